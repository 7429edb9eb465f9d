//! Crashes, exactly where a test wants them: a store and a host that stop at one numbered moment and do nothing more.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use dacapo_core::{Name, Timestamp};
use dacapo_store::{
    Done, Mail, MailRow, RunFilter, RunNo, RunRow, Runs, Store, StoreError, TaskRow, Tasks, TimerRow, Timers, Turns,
    Write, Writes,
};

/// The moments at which a process can die, between which nothing happens that others could see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A write is on its way; nothing of it is stored.
    BeforeCommit,
    /// A write is stored, and nobody knows of it.
    AfterCommit,
    /// An attempt is about to run.
    BeforeAttempt,
    /// An attempt has touched the world, and nobody knows what it came to.
    AfterAttempt,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeCommit => "before a commit",
            Self::AfterCommit => "after a commit, before it is known",
            Self::BeforeAttempt => "before an attempt",
            Self::AfterAttempt => "after an attempt, before its result is known",
        })
    }
}

/// Counts moments, and dies at one of them.
#[derive(Debug)]
pub(crate) struct Crash {
    passed: AtomicU64,
    dies_at: AtomicU64,
    died: Mutex<Option<Moment>>,
}

impl Crash {
    pub(crate) fn never() -> Arc<Self> {
        Arc::new(Self { passed: AtomicU64::new(0), dies_at: AtomicU64::new(u64::MAX), died: Mutex::default() })
    }

    pub(crate) fn at(moment: u64) -> Arc<Self> {
        let crash = Self::never();
        crash.dies_at.store(moment, Ordering::Relaxed);
        crash
    }

    /// Whether the process lives on after this moment.
    pub(crate) fn passes(&self, moment: Moment) -> bool {
        if self.is_dead() {
            return false;
        }
        let number = self.passed.fetch_add(1, Ordering::Relaxed);
        if number >= self.dies_at.load(Ordering::Relaxed) {
            self.died.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(moment);
            return false;
        }
        true
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.died().is_some()
    }

    pub(crate) fn died(&self) -> Option<Moment> {
        *self.died.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

/// A store that dies with its process.
pub(crate) struct Mortal {
    /// None once the process is buried, whoever still holds its engine: a file is let go of for the next process.
    store: RwLock<Option<Arc<dyn Store>>>,
    crash: Arc<Crash>,
}

impl Mortal {
    pub(crate) fn new(store: Arc<dyn Store>, crash: Arc<Crash>) -> Self {
        Self { store: RwLock::new(Some(store)), crash }
    }

    pub(crate) fn bury(&self) {
        self.store.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner).clone();
        store.ok_or_else(|| StoreError::Unavailable("its process is dead".to_owned()))
    }
}

impl Writes for Mortal {
    fn submit(&self, write: Write, done: Done) {
        if !self.crash.passes(Moment::BeforeCommit) {
            return;
        }
        let Ok(store) = self.store() else { return };
        let crash = self.crash.clone();
        store.submit(
            write,
            Box::new(move |result| {
                if crash.passes(Moment::AfterCommit) {
                    done(result);
                }
            }),
        );
    }
}

impl Runs for Mortal {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>, StoreError> {
        self.store()?.run(no)
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>, StoreError> {
        self.store()?.find(workflow_id, run_id)
    }

    fn list(&self, filter: &RunFilter, before: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        self.store()?.list(filter, before, limit)
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.store()?.count(filter)
    }
}

impl Turns for Mortal {
    fn turns(
        &self,
        run: RunNo,
        from: u64,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store()?.turns(run, from, show)
    }
}

impl Mail for Mortal {
    fn unseen(&self, run: RunNo) -> Result<Vec<MailRow>, StoreError> {
        self.store()?.unseen(run)
    }

    fn mail(&self, run: RunNo, key: &str) -> Result<Option<MailRow>, StoreError> {
        self.store()?.mail(run, key)
    }

    fn with_unseen_mail(&self, limit: usize) -> Result<Vec<RunNo>, StoreError> {
        self.store()?.with_unseen_mail(limit)
    }
}

impl Tasks for Mortal {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.store()?.tasks(queues, above, limit)
    }

    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>, StoreError> {
        self.store()?.tasks_of(run)
    }
}

impl Timers for Mortal {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
        self.store()?.due(until, limit)
    }

    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store()?.next_due()
    }
}
