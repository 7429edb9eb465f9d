//! Turn records as the events that all backends share.

use dacapo_client::{EventKind, HistoryEvent, OperationKind, Status};
use dacapo_core::{
    Command, CommandKind, Failure, Job, Name, Outcome, Payload, Resolution, Retried, Seq, StartOutcome, Target,
    TurnRecord,
};

/// Adds the events of a turn: first what came, then what the workflow decided.
pub(super) fn events_of(record: TurnRecord, events: &mut Vec<HistoryEvent>) {
    let (at, turn) = (record.now, record.number);
    let came = record.jobs.into_iter().filter_map(event_of_job);
    let decided = record.commands.into_iter().filter_map(event_of_command);
    events.extend(came.chain(decided).map(|kind| HistoryEvent { at, turn, kind }));
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
        Resolution::ChildStarted(StartOutcome::As(_)) | Resolution::NexusStarted(StartOutcome::As(_)) => {
            return Some(EventKind::OperationAccepted { seq });
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
    let started = |seq, operation, name, input| EventKind::OperationStarted { seq, operation, name, input };
    Some(match command.kind {
        CommandKind::Activity(activity) => {
            started(activity.seq, OperationKind::Activity, activity.activity, activity.input)
        }
        CommandKind::LocalActivity(activity) => {
            started(activity.seq, OperationKind::LocalActivity, activity.activity, activity.input)
        }
        CommandKind::SideEffect(closure) => started(closure.seq, OperationKind::SideEffect, closure.name, Vec::new()),
        CommandKind::Timer(timer) => {
            started(timer.seq, OperationKind::Timer, format!("{:?}", timer.duration).into(), Vec::new())
        }
        CommandKind::Child(child) => started(child.seq, OperationKind::Child, child.workflow, child.input),
        CommandKind::SignalExternal(signal) => {
            let name = format!("{} of {}", signal.signal, target(&signal.target));
            started(signal.seq, OperationKind::SignalExternal, name.into(), signal.input)
        }
        CommandKind::CancelExternal(cancel) => {
            started(cancel.seq, OperationKind::CancelExternal, target(&cancel.target), Vec::new())
        }
        CommandKind::Nexus(call) => started(call.seq, OperationKind::Nexus, call.operation, Vec::new()),
        CommandKind::Promise(promise) => started(promise.seq, OperationKind::Promise, promise.name, Vec::new()),
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
        CommandKind::ContinueAsNew(_) => EventKind::Closed { status: Status::ContinuedAsNew, result: None },
        _ => return None,
    })
}

fn closed(status: Status, outcome: Outcome) -> EventKind {
    EventKind::Closed { status, result: Some(outcome.into()) }
}

fn target(target: &Target) -> Name {
    target.to_string().into()
}
