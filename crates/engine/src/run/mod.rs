//! Runs in memory.

pub(crate) mod cache;
pub(crate) mod cached_run;
pub(crate) mod new_run;
pub(crate) mod open_operations;
pub(crate) mod waiters;
