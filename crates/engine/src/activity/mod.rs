//! Activities and local work.

pub(crate) mod attempt;
pub(crate) mod input_cache;
pub(crate) mod local;
pub(crate) mod retry;
pub(crate) mod task_queue;
