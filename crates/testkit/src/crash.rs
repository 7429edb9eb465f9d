//! Crashes, exactly where a test wants them: a store and a host that stop at one numbered moment and do nothing more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dacapo_store::{Done, Store, Write};
use parking_lot::Mutex;

use crate::front::Front;

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
            self.died.lock().get_or_insert(moment);
            return false;
        }
        true
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.died().is_some()
    }

    pub(crate) fn died(&self) -> Option<Moment> {
        *self.died.lock()
    }

    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

impl Front for Arc<Crash> {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        if !self.passes(Moment::BeforeCommit) {
            return;
        }
        let crash = self.clone();
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
