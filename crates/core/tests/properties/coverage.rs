//! What the generated programs really did, counted over all of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// What one program did, and how often.
#[derive(Clone, Default)]
pub(crate) struct Marks(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Marks {
    pub(crate) fn hit(&self, what: &'static str) {
        *self.0.lock().expect("no mark panics").entry(what).or_default() += 1;
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.lock().expect("no mark panics").get(what).copied().unwrap_or_default()
    }

    fn all(&self) -> Vec<&'static str> {
        self.0.lock().expect("no mark panics").keys().copied().filter(|what| !TAKEN.contains(what)).collect()
    }
}

/// Rules that workflow code saw broken.
pub(crate) const BROKEN: [&str; 3] = [
    "a cancellation of the run reached into a shield",
    "a wait that began after a cancellation came to a result",
    "a cancellation was taken back",
];

/// Signals that were taken, by their place in the list of those that are waited for.
pub(crate) const TAKEN: [&str; 2] = ["s0 taken", "s1 taken"];

/// What all programs did.
#[derive(Default)]
pub(crate) struct Coverage {
    programs: u64,
    hits: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub(crate) fn add(&mut self, marks: &Marks) {
        self.programs += 1;
        for what in marks.all() {
            *self.hits.entry(what).or_default() += 1;
        }
    }

    fn share(&self, what: &str) -> f64 {
        self.hits.get(what).copied().unwrap_or_default() as f64 * 100.0 / self.programs.max(1) as f64
    }

    /// One line for each thing that must be covered.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{} programs; executed by what share of them:\n", self.programs);
        for what in FEATURES {
            writeln!(text, "{:6.1} %  {what}", self.share(what)).expect("writing to memory cannot fail");
        }
        text
    }

    /// Each must have been done by at least this share of the programs.
    pub(crate) fn assert_at_least(&self, percent: f64) {
        if self.programs < 200 {
            return;
        }
        let missed: Vec<_> = FEATURES.iter().filter(|what| self.share(what) < percent).collect();
        assert!(missed.is_empty(), "executed by less than {percent} % of the programs: {missed:?}\n{}", self.table());
        let unknown: Vec<_> = self.hits.keys().filter(|what| !FEATURES.contains(what)).collect();
        assert!(unknown.is_empty(), "counted, and not on the list: {unknown:?}");
    }
}

/// Every operation and combinator.
pub(crate) const FEATURES: [&str; 65] = [
    "activity",
    "activity with options",
    "local activity",
    "local activity after a backoff",
    "timer",
    "child",
    "child start",
    "signal external",
    "cancel external",
    "promise",
    "side effect",
    "nexus",
    "future detached",
    "future dropped",
    "future stored",
    "future awaited later",
    "future polled and kept",
    "signal waited for",
    "signal tried",
    "signal handler",
    "update handler",
    "update rejected",
    "query handler",
    "query answered",
    "set state",
    "get state",
    "clear state",
    "publish",
    "state cell",
    "search attribute",
    "memo",
    "patched",
    "deprecated patch",
    "now",
    "random",
    "uuid",
    "info",
    "choose",
    "yield",
    "wait until",
    "parallel",
    "nested parallel",
    "join",
    "try join",
    "foreign join",
    "race",
    "select all",
    "foreign select",
    "timeout",
    "launch",
    "launched unit awaited",
    "strict scope",
    "cancellable",
    "scope cancelled",
    "shield",
    "phase",
    "phase handler",
    "run cancelled",
    "result failed",
    "result cancelled",
    "several jobs in a turn",
    "late result ignored",
    "seed changed",
    "continue as new",
    "closed",
];
