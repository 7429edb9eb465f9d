//! The host: what an engine needs of the process it lives in. One host has threads and a clock; the one of the test kit
//! has neither, so that tests are exact.

pub(crate) mod threads;

use std::time::Duration;

use dacapo_core::{Name, Timestamp, Watch};
use dacapo_worker::{Attempt, GiveUp, WatchedTurn};

/// Work for a thread that plays turns.
pub type Work = Box<dyn FnOnce() + Send>;

/// Where an engine lives.
pub trait Host: Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;
    /// Has this done, soon, on a thread without an async runtime, as far as this queue has places; at once if it is of none.
    fn play(&self, queue: Option<&Name>, work: Work);
    /// Runs an attempt.
    fn attempt(&self, attempt: Attempt);
    /// Calls [`crate::Engine::tick`] at this time, or a little later. A new call replaces the one before.
    fn wake_at(&self, at: Timestamp);
    /// Watches over a turn that is about to be played on this thread and may take so long, until what it gives is dropped.
    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn>;
    /// The engine shuts down by itself, because of this: sees to it that the process ends, even if user code does not.
    fn end_process(&self, why: &str);
    /// A new run id. Ids that rise with time keep the index on them short.
    fn run_id(&self) -> Name;
}
