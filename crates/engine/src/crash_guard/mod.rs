//! Code that kills its process.

pub(crate) mod probation;
pub(crate) mod quarantine;
