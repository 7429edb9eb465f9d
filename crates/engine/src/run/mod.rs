//! Runs in memory: their inboxes, their open operations, and the callers that wait for them.

pub(crate) mod cache;
pub(crate) mod cached_run;
pub(crate) mod deliver;
pub(crate) mod forget;
pub(crate) mod info;
pub(crate) mod late;
pub(crate) mod message;
pub(crate) mod new_run;
pub(crate) mod open_operations;
pub(crate) mod started;
pub(crate) mod waiters;
pub(crate) mod waiting_counts;
