//! The open operations of a run, as a fold over its turns.
//!
//! A turn is entered the same way when it is played and when it is replayed, so that a run that was loaded again has the
//! same open operations as one that never left memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dacapo_core::{
    AttributeValue, Command, CommandKind, CreatePromise, History, Job, Name, Operation, Payload, Resolution,
    ScheduleActivity, ScheduleLocalActivity, ScheduleSideEffect, Seq, Start, StartChild, StartOutcome, Timestamp,
    TurnRecord,
};

/// The open operations of a run, and what else follows from its turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenOperations {
    /// The number of the next turn.
    pub(crate) next_turn: u64,
    /// The size of the history.
    pub(crate) history: History,
    /// The start of the run; with its input only where the run may be tried again with it.
    pub(crate) start: Arc<Start>,
    /// Operations that are not resolved.
    pub(crate) operations: BTreeMap<Seq, Open>,
    /// Those of them that no row of their own would bring back after a crash: local work, and activities that were asked
    /// to stop.
    pub(crate) without_row: BTreeSet<Seq>,
    /// Since when there are any. A stored timer has the same time.
    pub(crate) without_row_since: Option<Timestamp>,
    /// Updates that were accepted and are not answered.
    pub(crate) updates: BTreeSet<Name>,
    /// The current memo.
    pub(crate) memo: BTreeMap<Name, Payload>,
    /// The current search attributes.
    pub(crate) attributes: BTreeMap<Name, AttributeValue>,
    /// Whether the run was asked to cancel.
    pub(crate) cancelled: bool,
}

/// An operation that is not resolved.
#[derive(Clone, Debug)]
pub(crate) enum Open {
    Activity { command: Arc<ScheduleActivity>, turn: u64, position: u32, scheduled: Timestamp },
    Local { command: Arc<ScheduleLocalActivity>, scheduled: Timestamp },
    SideEffect { command: Arc<ScheduleSideEffect>, scheduled: Timestamp },
    Timer { due: Timestamp },
    Child { command: Arc<StartChild>, started: bool },
    External,
    Promise(Arc<CreatePromise>),
}

impl OpenOperations {
    /// Enters a turn that is recorded, or is about to be.
    pub(crate) fn enter(&mut self, record: &TurnRecord, bytes: usize) {
        for job in &record.jobs {
            self.enter_job(job);
        }
        for (position, command) in record.commands.iter().enumerate() {
            self.enter_command(command, record, position as u32);
        }
        self.without_row_since = match self.without_row.is_empty() {
            true => None,
            false => self.without_row_since.or(Some(record.now)),
        };
        self.next_turn = record.number + 1;
        self.history.length += (record.jobs.len() + record.commands.len()) as u64;
        self.history.bytes += bytes as u64;
    }

    fn enter_job(&mut self, job: &Job) {
        match job {
            Job::Start(start) => {
                self.memo.clone_from(&start.memo);
                self.attributes.clone_from(&start.search_attributes);
                self.start = kept(start);
            }
            Job::Resolve { seq, resolution, .. } => self.resolve(*seq, resolution),
            Job::Cancel { .. } => self.cancelled = true,
            _ => {}
        }
    }

    fn resolve(&mut self, seq: Seq, resolution: &Resolution) {
        match (resolution, self.operations.get_mut(&seq)) {
            (Resolution::ChildStarted(StartOutcome::As(_)), Some(Open::Child { started, .. })) => *started = true,
            _ => self.end(seq),
        }
    }

    fn end(&mut self, seq: Seq) {
        self.operations.remove(&seq);
        self.without_row.remove(&seq);
    }

    fn enter_command(&mut self, command: &Command, record: &TurnRecord, position: u32) {
        let (turn, scheduled) = (record.number, record.now);
        let open = match &command.kind {
            CommandKind::Activity(command) => Open::Activity { command: command.clone(), turn, position, scheduled },
            CommandKind::LocalActivity(command) => Open::Local { command: Arc::new((**command).clone()), scheduled },
            CommandKind::SideEffect(command) => Open::SideEffect { command: Arc::new((**command).clone()), scheduled },
            CommandKind::Timer(timer) => Open::Timer { due: scheduled.after(timer.duration) },
            CommandKind::Child(command) => Open::Child { command: Arc::new((**command).clone()), started: false },
            CommandKind::SignalExternal(_) | CommandKind::CancelExternal(_) => Open::External,
            CommandKind::Promise(promise) => Open::Promise(Arc::new((**promise).clone())),
            CommandKind::Cancel(cancel) => return self.cancel(cancel.seq, cancel.operation),
            CommandKind::Memo(changes) => return change(&mut self.memo, changes),
            CommandKind::SearchAttributes(changes) => return change(&mut self.attributes, changes),
            CommandKind::AcceptUpdate { update } => {
                self.updates.insert(update.clone());
                return;
            }
            CommandKind::CompleteUpdate(done) => {
                self.updates.remove(&done.update);
                return;
            }
            _ => return,
        };
        if let Some(seq) = command.kind.seq() {
            if matches!(open, Open::Local { .. } | Open::SideEffect { .. }) {
                self.without_row.insert(seq);
            }
            self.operations.insert(seq, open);
        }
    }

    /// Ends a cancelled operation, unless the workflow still waits for its outcome.
    fn cancel(&mut self, seq: Seq, operation: Operation) {
        let waits = match self.operations.get(&seq) {
            Some(Open::Activity { command, .. }) => waits(command.cancel),
            Some(Open::Local { command, .. }) => waits(command.cancel),
            Some(Open::Child { command, .. }) => waits(command.cancel),
            _ => false,
        };
        debug_assert!(operation != Operation::Timer || !waits, "a cancelled timer is over");
        match waits {
            true if operation == Operation::Activity => drop(self.without_row.insert(seq)),
            true => {}
            false => self.end(seq),
        }
    }

    /// Whether this resolution is one that the run still waits for.
    pub(crate) fn expects(&self, seq: Seq, resolution: &Resolution) -> bool {
        match (self.operations.get(&seq), resolution) {
            (Some(Open::Child { started, .. }), Resolution::ChildStarted(_)) => !started,
            // The child's start came before, or comes in the same turn: messages keep their order.
            (Some(Open::Child { .. }), Resolution::Child(_))
            | (Some(Open::Activity { .. }), Resolution::Activity(_))
            | (Some(Open::Local { .. }), Resolution::Activity(_) | Resolution::Backoff { .. })
            | (Some(Open::SideEffect { .. }), Resolution::SideEffect(_))
            | (Some(Open::Timer { .. }), Resolution::Timer)
            | (Some(Open::External), Resolution::SignalExternal { .. } | Resolution::CancelExternal { .. })
            | (Some(Open::Promise(_)), Resolution::Promise(_)) => true,
            _ => false,
        }
    }
}

/// Copies a start without its input, which may be large, unless another try would need it.
pub(crate) fn kept(start: &Start) -> Arc<Start> {
    let retries = start.terms.as_ref().is_some_and(|terms| terms.retry.is_some());
    let input = if retries { start.input.clone() } else { Vec::new() };
    Arc::new(Start { input, ..start.clone() })
}

/// Whether the workflow still waits for the outcome of an operation that it cancelled.
pub(crate) fn waits(cancel: dacapo_core::CancelType) -> bool {
    use dacapo_core::CancelType::{Abandon, TryCancel};
    !matches!(cancel, TryCancel | Abandon)
}

fn change<T: Clone>(map: &mut BTreeMap<Name, T>, changes: &BTreeMap<Name, Option<T>>) {
    for (name, value) in changes {
        match value {
            Some(value) => drop(map.insert(name.clone(), value.clone())),
            None => drop(map.remove(name)),
        }
    }
}
