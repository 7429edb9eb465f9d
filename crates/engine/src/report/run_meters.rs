//! How many runs of each workflow were started and closed.

use std::collections::BTreeMap;

use dacapo_core::Name;
use dacapo_store::Status;
use dacapo_worker::meter;
use metrics::Counter;

/// The counters of runs, by workflow. Workflows that are not registered here are not counted: their number is not bounded.
pub(crate) struct RunMeters(BTreeMap<Name, WorkflowMeters>);

struct WorkflowMeters {
    started: Counter,
    closed: BTreeMap<Status, Counter>,
}

impl RunMeters {
    pub(crate) fn new<'a>(workflows: impl Iterator<Item = &'a Name>) -> Self {
        Self(workflows.map(|workflow| (workflow.clone(), WorkflowMeters::new(workflow))).collect())
    }

    /// Counts a run that was started.
    pub(crate) fn started(&self, workflow: &Name) {
        if let Some(meters) = self.0.get(workflow) {
            meters.started.increment(1);
        }
    }

    /// Counts a run that was closed.
    pub(crate) fn closed(&self, workflow: &Name, status: Status) {
        if let Some(counter) = self.0.get(workflow).and_then(|meters| meters.closed.get(&status)) {
            counter.increment(1);
        }
    }
}

impl WorkflowMeters {
    fn new(workflow: &str) -> Self {
        let closed = |status: Status| {
            let word = status.to_string().replace(' ', "_");
            (status, meter::RUNS_CLOSED.counter(&[workflow, &word]))
        };
        Self {
            started: meter::RUNS_STARTED.counter(&[workflow]),
            closed: Status::ALL.into_iter().filter(|status| !status.is_open()).map(closed).collect(),
        }
    }
}
