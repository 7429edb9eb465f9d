//! What is logged.

pub(crate) mod deduplication;
pub(crate) mod log;
pub(crate) mod trace;
