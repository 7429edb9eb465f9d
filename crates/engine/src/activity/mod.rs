//! Activities: the task queue, attempts and how they end, local work.

pub(crate) mod adopt;
pub(crate) mod blocked;
pub(crate) mod cancel;
pub(crate) mod cancel_elsewhere;
pub(crate) mod dispatch;
pub(crate) mod end;
pub(crate) mod heartbeat;
pub(crate) mod input_cache;
pub(crate) mod local;
pub(crate) mod local_work;
pub(crate) mod pending;
pub(crate) mod shared_tasks;
pub(crate) mod task;
pub(crate) mod task_queue;
pub(crate) mod task_table;
pub(crate) mod timeout;
