//! Logs and counters for operators.

pub(crate) mod deduplication;
pub(crate) mod log;
pub(crate) mod open_runs;
pub(crate) mod queue_log;
pub(crate) mod run_meters;
pub(crate) mod stuck_log;
pub(crate) mod stuck_reason;
