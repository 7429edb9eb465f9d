//! How many runs of each workflow were started and closed, and how many are open.

use std::collections::BTreeMap;

use dacapo_core::Name;
use dacapo_store::{RunNo, StartedRun, Status, TurnOf, TurnWrite, TurnWritten, Write, Written};
use dacapo_sync::{Mutex, MutexGuard, ranks};
use dacapo_worker::meter;
use metrics::Counter;

use crate::report::open_runs::{Change, Generation, OpenRuns};

/// The meters of runs, by workflow. Workflows that are not registered here are not counted: their number is not bounded.
pub(crate) struct RunMeters {
    workflows: BTreeMap<Name, WorkflowMeters>,
    open: Mutex<OpenRuns>,
}

/// The workflow of the run that a write is about, if the write starts the run, and the status if it closes it. What a
/// write does to other runs its answer says.
#[derive(Default)]
pub(crate) struct OwnRun {
    started: Option<Name>,
    closed: Option<(Name, Status)>,
}

struct WorkflowMeters {
    started: Counter,
    closed: BTreeMap<Status, Counter>,
}

impl OwnRun {
    /// Returns what a write that is not a turn does to its run.
    pub(crate) fn of(write: &Write) -> Self {
        match write {
            Write::Reset(reset) => Self { started: Some(reset.new.workflow.clone()), closed: None },
            _ => Self::default(),
        }
    }

    /// Returns what a turn does to its run, which has this workflow.
    pub(crate) fn of_turn(workflow: &Name, write: &TurnWrite) -> Self {
        let is_new = matches!(write.run, TurnOf::New(_));
        let closed = write.close.as_ref().map(|closing| (workflow.clone(), closing.status));
        Self { started: is_new.then(|| workflow.clone()), closed }
    }
}

impl RunMeters {
    pub(crate) fn new<'a>(workflows: impl Iterator<Item = &'a Name>) -> Self {
        let workflows: BTreeMap<_, _> = workflows.map(|name| (name.clone(), WorkflowMeters::new(name))).collect();
        let open = Mutex::new(ranks::OPEN_RUNS, OpenRuns::new(workflows.keys()));
        Self { workflows, open }
    }

    /// The numbers of open runs.
    pub(crate) fn open(&self) -> MutexGuard<'_, OpenRuns> {
        self.open.lock()
    }

    /// Counts the runs that a committed write of this generation has started and closed.
    pub(crate) fn count(&self, own: OwnRun, written: &Written, generation: Generation) {
        match written {
            Written::Started { run, effects } => {
                self.started(run, generation);
                self.count_others(effects, generation);
            }
            Written::Turn(written) => {
                if let Some(workflow) = own.started {
                    self.opened(written.run, &workflow, generation);
                }
                if let Some((workflow, status)) = own.closed {
                    self.closed(written.run, &workflow, status, generation);
                }
                self.count_others(written, generation);
            }
            _ => {}
        }
    }

    fn count_others(&self, written: &TurnWritten, generation: Generation) {
        written.started.iter().for_each(|run| self.started(run, generation));
        written.closed.iter().for_each(|run| self.closed(run.run, &run.workflow, run.status, generation));
    }

    fn started(&self, started: &StartedRun, generation: Generation) {
        if started.fresh {
            self.opened(started.run, &started.workflow, generation);
        }
    }

    fn opened(&self, run: RunNo, workflow: &Name, generation: Generation) {
        if let Some(meters) = self.workflows.get(workflow) {
            meters.started.increment(1);
            self.open().change(run, workflow, Change::Opened, generation);
        }
    }

    fn closed(&self, run: RunNo, workflow: &Name, status: Status, generation: Generation) {
        if let Some(counter) = self.workflows.get(workflow).and_then(|meters| meters.closed.get(&status)) {
            counter.increment(1);
            self.open().change(run, workflow, Change::Closed, generation);
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
