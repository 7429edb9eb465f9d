//! Closures of side effects that are to be run: from the turn that asked for them to the attempt that runs them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
        closure.into_iter().for_each(drop_closure);
    }

    /// Drops all closures of a run that leaves memory.
    pub(crate) fn remove_run(&self, run: &str) {
        let gone = self.0.lock().remove(run);
        gone.into_iter().flat_map(|gone| gone.closures.into_values()).for_each(drop_closure);
    }
}

/// Drops user code, without the lock and whatever its destructors do: the activation has to be replied to.
fn drop_closure(closure: RunClosure) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(closure))) {
        dacapo_sync::abort_on_violation(&*panic);
        tracing::warn!(target: "dacapo", "a closure of a side effect panicked when it was dropped");
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::{OperationId, Payload, ScheduleSideEffect, Timeouts, Timestamp};

    use super::*;
    use crate::player::side_effects::SideEffects;

    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("of the test");
        }
    }

    /// Keeps a closure that panics when it is dropped.
    fn keep(closures: &Closures, seq: u64) {
        let seq = Seq(seq);
        let id = OperationId::of(1, seq);
        let command = ScheduleSideEffect {
            seq,
            id,
            name: "draw".into(),
            retry: None,
            timeouts: Timeouts::default(),
            summary: None,
        };
        let attempt = SideEffects::default().begin(&command, Timestamp(1));
        let panics = Panics;
        let closure: RunClosure = Box::new(move || {
            let _panics = panics;
            Box::pin(async { Ok(Payload::empty()) })
        });
        closures.keep(&"run".into(), attempt, Some(closure));
    }

    #[test]
    fn closure_that_panics_when_it_is_dropped_keeps_no_activation_from_its_reply() {
        let closures = Closures::new();
        let run = Name::from("run");
        for seq in [1, 2, 3] {
            keep(&closures, seq);
        }
        closures.resolved(&run, Seq(1));
        assert!(!closures.has(&run, Seq(1)) && closures.has(&run, Seq(2)));
        closures.remove_run(&run);
        assert!(!closures.has(&run, Seq(2)) && !closures.has(&run, Seq(3)));
    }
}
