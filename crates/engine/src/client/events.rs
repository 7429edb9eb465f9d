//! Turn records as the events that all backends share.

use std::sync::Arc;

use dacapo_client::{EventKind, HistoryEvent, OperationKind, OperationStart, RunRef, Status};
use dacapo_core::{
    Command, CommandKind, Failure, Job, Name, Outcome, Payload, Resolution, Retried, Seq, StartOutcome, Target,
    TurnRecord,
};

/// Adds the events of a turn: first what came, then what the workflow decided.
pub(super) fn events_of(record: TurnRecord, events: &mut Vec<HistoryEvent>) {
    let (at, turn) = (record.now, record.number);
    let came = record.jobs.into_iter().filter_map(event_of_job);
    let decided = record.commands.into_iter().filter_map(event_of_command);
    events.extend(came.chain(decided).map(|kind| HistoryEvent::new(at, turn, kind)));
}

fn event_of_job(job: Job) -> Option<EventKind> {
    Some(match job {
        Job::Start(start) => EventKind::Started { workflow: start.workflow, input: start.input },
        Job::Seed { .. } => EventKind::Reset,
        Job::Signal(signal) => EventKind::Signalled { signal: signal.name, input: signal.input },
        Job::Update(update) => EventKind::UpdateReceived { id: update.id, update: update.name, input: update.input },
        Job::Cancel { reason } => EventKind::CancelRequested { reason },
        Job::Resolve { seq, resolution, retried } => resolved(seq, resolution, retried)?,
        // A mark for the replay.
        _ => return None,
    })
}

fn resolved(seq: Seq, resolution: Resolution, retried: Option<Box<Retried>>) -> Option<EventKind> {
    let delivered = |failure: Option<Box<Failure>>| failure.map_or_else(|| Ok(Payload::default()), |why| Err(*why));
    let result = match resolution {
        Resolution::Timer => Ok(Payload::default()),
        Resolution::ChildStarted(StartOutcome::As(run_id)) => {
            return Some(EventKind::OperationAccepted { seq, run_id: Some(run_id) });
        }
        Resolution::NexusStarted(StartOutcome::As(_)) => {
            return Some(EventKind::OperationAccepted { seq, run_id: None });
        }
        Resolution::ChildStarted(StartOutcome::Failed(why)) | Resolution::NexusStarted(StartOutcome::Failed(why)) => {
            Err(*why)
        }
        Resolution::SignalExternal { failure } | Resolution::CancelExternal { failure } => delivered(failure),
        Resolution::Activity(outcome)
        | Resolution::SideEffect(outcome)
        | Resolution::Child(outcome)
        | Resolution::Nexus(outcome)
        | Resolution::Promise(outcome) => outcome.into(),
        // The next attempt of a local activity follows, as an operation of its own.
        _ => return None,
    };
    let (attempts, last_failure) = retried.map_or((1, None), |retried| (retried.attempts, retried.last_failure));
    Some(EventKind::OperationEnded { seq, result, attempts, last_failure })
}

fn event_of_command(command: Command) -> Option<EventKind> {
    Some(match command.kind {
        CommandKind::Activity(activity) => {
            let activity = Arc::unwrap_or_clone(activity);
            begun(activity.seq, OperationKind::Activity, activity.activity, activity.input, activity.summary)
        }
        CommandKind::LocalActivity(activity) => {
            begun(activity.seq, OperationKind::LocalActivity, activity.activity, activity.input, activity.summary)
        }
        CommandKind::SideEffect(closure) => {
            begun(closure.seq, OperationKind::SideEffect, closure.name, Vec::new(), closure.summary)
        }
        CommandKind::Timer(timer) => {
            let mut start = OperationStart::new(timer.seq, OperationKind::Timer, Name::default());
            (start.duration, start.summary) = (Some(timer.duration), timer.summary);
            EventKind::OperationStarted(Box::new(start))
        }
        CommandKind::Child(child) => {
            let mut start = OperationStart::new(child.seq, OperationKind::Child, child.workflow);
            (start.input, start.summary) = (child.input, child.summary);
            start.target = Some(RunRef::latest(child.workflow_id));
            EventKind::OperationStarted(Box::new(start))
        }
        CommandKind::SignalExternal(signal) => {
            let mut start = OperationStart::new(signal.seq, OperationKind::SignalExternal, signal.signal);
            (start.input, start.target) = (signal.input, Some(run_of(signal.target)));
            EventKind::OperationStarted(Box::new(start))
        }
        CommandKind::CancelExternal(cancel) => {
            let mut start = OperationStart::new(cancel.seq, OperationKind::CancelExternal, Name::default());
            start.target = Some(run_of(cancel.target));
            EventKind::OperationStarted(Box::new(start))
        }
        CommandKind::Nexus(call) => {
            begun(call.seq, OperationKind::Nexus, call.operation, vec![call.input], call.summary)
        }
        CommandKind::Promise(promise) => begun(promise.seq, OperationKind::Promise, promise.name, Vec::new(), None),
        CommandKind::Cancel(cancel) => EventKind::OperationCancelled { seq: cancel.seq },
        CommandKind::Patch(patch) => EventKind::Patched { patch: patch.id },
        CommandKind::SearchAttributes(values) => EventKind::Annotated { names: values.into_keys().collect() },
        CommandKind::Memo(values) => EventKind::Annotated { names: values.into_keys().collect() },
        CommandKind::State(state) => EventKind::Annotated { names: vec![state.key] },
        CommandKind::AcceptUpdate { update } => EventKind::UpdateAccepted { id: update },
        CommandKind::CompleteUpdate(update) => {
            EventKind::UpdateCompleted { id: update.update, result: update.outcome.into() }
        }
        CommandKind::Complete { result } => closed(Status::Completed, Outcome::Completed(result)),
        CommandKind::Fail { failure } => closed(Status::Failed, Outcome::Failed(failure)),
        CommandKind::CancelRun { failure } => closed(Status::Cancelled, Outcome::Failed(failure)),
        CommandKind::ContinueAsNew(_) => {
            EventKind::Closed { status: Status::ContinuedAsNew, result: None, next_run_id: None }
        }
        _ => return None,
    })
}

/// The event of an operation that has a name, arguments and a summary.
fn begun(seq: Seq, operation: OperationKind, name: Name, input: Vec<Payload>, summary: Option<String>) -> EventKind {
    let mut start = OperationStart::new(seq, operation, name);
    (start.input, start.summary) = (input, summary);
    EventKind::OperationStarted(Box::new(start))
}

fn closed(status: Status, outcome: Outcome) -> EventKind {
    EventKind::Closed { status, result: Some(outcome.into()), next_run_id: None }
}

fn run_of(target: Target) -> RunRef {
    match target {
        Target::Workflow { workflow_id, run_id: Some(run_id), .. } => RunRef::exact(workflow_id, run_id),
        Target::Workflow { workflow_id, .. } | Target::Child { workflow_id } => RunRef::latest(workflow_id),
    }
}
