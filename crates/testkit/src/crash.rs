//! Crashes at exact moments: a store and a host that stop at one numbered moment and do nothing more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dacapo_store::{Done, Store, Write};
use parking_lot::Mutex;

use crate::store_layer::StoreLayer;

/// The moments at which a process can die. Between them nothing happens that another process could see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A write is submitted; nothing of it is stored.
    BeforeCommit,
    /// A write is stored, and its submitter has no answer yet.
    AfterCommit,
    /// An attempt is about to run.
    BeforeAttempt,
    /// An attempt has had its effects, and its result is not known yet.
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

/// A count of moments, with the one at which the process dies.
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

    /// Passes a moment. Returns whether the process lives on after it.
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

impl StoreLayer for Arc<Crash> {
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
