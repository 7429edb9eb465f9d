//! The nodes whose callers wait for the end of a run that this node owns.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_store::{NodeNo, RunNo};
use dacapo_sync::{Mutex, ranks};

/// The nodes that wait, by run. Lost when the process ends: a node that waits looks for itself from time to time.
pub(crate) struct Watchers(Mutex<BTreeMap<RunNo, BTreeSet<NodeNo>>>);

impl Watchers {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::WATCHERS, BTreeMap::new()))
    }

    /// Notes that a node waits for the end of a run.
    pub(crate) fn add(&self, run: RunNo, node: NodeNo) {
        self.0.lock().entry(run).or_default().insert(node);
    }

    /// Takes the nodes that wait for the end of a run. They come again if it goes on.
    pub(crate) fn take(&self, run: RunNo) -> BTreeSet<NodeNo> {
        self.0.lock().remove(&run).unwrap_or_default()
    }

    /// Forgets the nodes that wait for runs which this node owns no longer.
    pub(crate) fn forget(&self, is_lost: impl Fn(RunNo) -> bool) {
        self.0.lock().retain(|run, _| !is_lost(*run));
    }
}
