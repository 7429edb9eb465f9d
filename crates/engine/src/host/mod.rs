//! The host: what an engine needs of the process it lives in. One host has threads and clocks; the one of the test kit has
//! neither, so that tests are exact.

pub(crate) mod blocking;
pub(crate) mod clock;
pub(crate) mod step_watch;
pub(crate) mod threads;

use std::fmt;
use std::time::Duration;

use dacapo_core::{Name, Timestamp, Watch};
use dacapo_store::RunNo;
use dacapo_worker::{Attempt, GiveUp, WatchedTurn};

/// A moment by a clock that is never set: it advances with monotonic time, so that a step of the machine's clock times out
/// nothing that runs. It is near the time of day, because it began as it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Steady(pub Timestamp);

impl Steady {
    /// The moment this long after it.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.after(time))
    }

    /// The time since an earlier moment; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.since(earlier.0)
    }
}

/// The kind of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkKind {
    /// A turn of a run, with the work that leads up to it.
    Turn,
    /// The first turn of a new run.
    Start,
    /// A read of the store.
    Read,
    /// A write to the store.
    Write,
    /// The start of an attempt whose input has to be read.
    Attempt,
    /// Destructors of a run that leaves memory.
    Evict,
}

impl fmt::Display for WorkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turn => "turn",
            Self::Start => "start",
            Self::Read => "read",
            Self::Write => "write",
            Self::Attempt => "attempt",
            Self::Evict => "evict",
        })
    }
}

/// Work for a thread that may block and run workflow code.
pub struct Work {
    /// The kind of work.
    pub kind: WorkKind,
    /// The run that it is for, if it is for one.
    pub run: Option<RunNo>,
    /// The task queue in whose places it is done; none if it is done at once.
    pub queue: Option<Name>,
    task: Box<dyn FnOnce() + Send>,
}

impl Work {
    /// Creates a piece of work.
    pub fn new(kind: WorkKind, run: Option<RunNo>, queue: Option<Name>, task: impl FnOnce() + Send + 'static) -> Self {
        Self { kind, run, queue, task: Box::new(task) }
    }

    /// Performs the work.
    pub fn perform(self) {
        (self.task)();
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("kind", &self.kind).field("run", &self.run).finish_non_exhaustive()
    }
}

/// The process that an engine lives in: its threads and clocks.
pub trait Host: Send + Sync {
    /// The engine's time: monotonic time plus an offset, so that it never goes back. Stored timers count it.
    fn now(&self) -> Timestamp;
    /// Steady time, by a clock that is never set. Timeouts of attempts, heartbeats, zombies and shutdown count it.
    fn steady_now(&self) -> Steady;
    /// Performs work, soon, on a thread without an async runtime.
    fn perform(&self, work: Work);
    /// Runs an attempt.
    fn attempt(&self, attempt: Attempt);
    /// Calls [`crate::Engine::tick`] at this time, or a little later. Of several calls the earliest time holds. The
    /// host also calls it when the engine's time was moved forward.
    fn wake_at(&self, at: Steady);
    /// Watches a turn that is about to be played on this thread, until the returned value is dropped. Calls `give_up`
    /// if the turn takes longer than `limit`.
    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn>;
    /// Makes sure that the process ends, even if user code does not: the engine shuts itself down for this reason.
    fn end_process(&self, why: &str);
    /// Creates a run id. Ids that rise with time keep the index on them short.
    fn run_id(&self) -> Name;
}
