//! Reading what a store keeps.

pub(crate) mod archive;
pub(crate) mod describe;
pub(crate) mod records;
pub(crate) mod replay_check;
pub(crate) mod verify;
