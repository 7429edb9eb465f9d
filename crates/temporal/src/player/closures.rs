//! Closures of side effects that are to be run: from the turn that asked for them to the attempt that runs them.

use std::collections::BTreeMap;

use dacapo_core::{Name, RunClosure, Seq};
use dacapo_sync::{Mutex, ranks};

use super::side_effects::NextAttempt;

/// The closures of all runs in memory.
pub(crate) struct Closures(Mutex<BTreeMap<Name, OfRun>>);

#[derive(Default)]
struct OfRun {
    closures: BTreeMap<Seq, RunClosure>,
    /// By activity id.
    attempts: BTreeMap<String, NextAttempt>,
}

impl Closures {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::TEMPORAL_CLOSURES, BTreeMap::new()))
    }

    /// Keeps an attempt that is asked for, and its closure, if the run had one.
    pub(crate) fn keep(&self, run: &Name, attempt: NextAttempt, closure: Option<RunClosure>) {
        let mut all = self.0.lock();
        let of_run = all.entry(run.clone()).or_default();
        if let Some(closure) = closure {
            of_run.closures.insert(attempt.seq, closure);
        }
        of_run.attempts.insert(attempt.activity_id.clone(), attempt);
    }

    /// Takes an attempt and its closure. The closure is missing where it is spent.
    pub(crate) fn take(&self, run: &str, activity_id: &str) -> Option<(NextAttempt, Option<RunClosure>)> {
        let mut all = self.0.lock();
        let of_run = all.get_mut(run)?;
        let attempt = of_run.attempts.remove(activity_id)?;
        let closure = of_run.closures.remove(&attempt.seq);
        Some((attempt, closure))
    }

    /// Whether the closure of an operation is here.
    pub(crate) fn has(&self, run: &Name, seq: Seq) -> bool {
        self.0.lock().get(run).is_some_and(|of_run| of_run.closures.contains_key(&seq))
    }

    /// Drops what belongs to an operation that has a result.
    pub(crate) fn resolved(&self, run: &Name, seq: Seq) {
        let mut all = self.0.lock();
        let Some(of_run) = all.get_mut(run) else { return };
        let closure = of_run.closures.remove(&seq);
        of_run.attempts.retain(|_, attempt| attempt.seq != seq);
        drop(all);
        // User code is dropped without the lock.
        drop(closure);
    }

    /// Drops all closures of a run that leaves memory.
    pub(crate) fn remove_run(&self, run: &str) {
        let gone = self.0.lock().remove(run);
        drop(gone);
    }
}
