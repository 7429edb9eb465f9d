//! The server's events as events that all backends share.
//!
//! The number of an operation is the id of the event that began it: all later events of the operation name it, whatever SDK wrote
//! them.

use dacapo_client::{EventKind, HistoryEvent, OperationKind, OperationStart, RunRef, Status};
use dacapo_core::{Failure, FailureKind, Name, Payload, Seq, Timestamp};

use super::end::end_of;
use crate::convert::{
    duration_from_proto, failure_from_proto, first_from_proto, payload_from_proto, payloads_from_proto, time_from_proto,
};
use crate::proto::history::{self as proto, history_event::Attributes};
use crate::proto::{common, update};
use crate::reserved::SIDE_EFFECT;

/// The markers of Temporal's core.
const LOCAL_ACTIVITY: &str = "core_local_activity";
const PATCH: &str = "core_patch";

/// Reads events in order.
pub(super) struct EventReader {
    /// How many workflow tasks were completed before.
    turn: u64,
    events: Vec<HistoryEvent>,
    /// Attempts of activities that have begun, by the number of the operation: how often they were tried.
    attempts: std::collections::BTreeMap<i64, (u32, Option<Failure>)>,
}

impl EventReader {
    pub(super) fn at(turn: u64) -> Self {
        Self { turn, events: Vec::new(), attempts: std::collections::BTreeMap::new() }
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    pub(super) fn events(&self) -> &[HistoryEvent] {
        &self.events
    }

    pub(super) fn into_events(self) -> Vec<HistoryEvent> {
        self.events
    }

    /// Whether the events of another turn begin with this one: a workflow task is scheduled when something came for the run.
    pub(super) fn begins_turn(&self, event: &proto::HistoryEvent) -> bool {
        let is_of_turn_before = decided_by_workflow(event.attributes.as_ref());
        !is_of_turn_before && self.events.last().is_some_and(|last| last.turn < self.turn)
    }

    /// Reads the next event.
    pub(super) fn read(&mut self, event: proto::HistoryEvent) {
        let at = event.event_time.map(time_from_proto).unwrap_or_default();
        let Some(attributes) = event.attributes else { return };
        // What a workflow decided belongs to the task that was completed last; what came for it to the next one.
        let turn = match decided_by_workflow(Some(&attributes)) {
            true => self.turn.saturating_sub(1),
            false => self.turn,
        };
        let summary = event.user_metadata.and_then(|metadata| metadata.summary).and_then(text_of);
        let id = event.event_id;
        match attributes {
            Attributes::WorkflowTaskCompletedEventAttributes(_) => self.turn += 1,
            Attributes::ActivityTaskStartedEventAttributes(started) => {
                let attempt = u32::try_from(started.attempt).unwrap_or(1);
                let last_failure = started.last_failure.map(failure_from_proto);
                self.attempts.insert(started.scheduled_event_id, (attempt, last_failure));
            }
            Attributes::MarkerRecordedEventAttributes(marker) => self.marker(at, turn, id, marker),
            other => {
                let kind = self.kind(id, other, summary);
                self.push(at, turn, kind);
            }
        }
    }

    fn push(&mut self, at: Timestamp, turn: u64, kind: Option<EventKind>) {
        self.events.extend(kind.map(|kind| HistoryEvent::new(at, turn, kind)));
    }

    fn kind(&mut self, id: i64, event: Attributes, summary: Option<String>) -> Option<EventKind> {
        started(id, &event, summary)
            .map(|start| EventKind::OperationStarted(Box::new(start)))
            .or_else(|| self.ended(&event))
            .or_else(|| message(&event))
            .or_else(|| closed(event))
    }

    /// The end of an operation.
    fn ended(&mut self, event: &Attributes) -> Option<EventKind> {
        let (id, result) = end_of_operation(event)?;
        let (attempts, last_failure) = self.attempts.remove(&id).unwrap_or((1, None));
        Some(EventKind::OperationEnded { seq: seq(id), result, attempts, last_failure })
    }

    /// Local activities and patches: one marker is all that there is of them.
    fn marker(&mut self, at: Timestamp, turn: u64, id: i64, marker: proto::MarkerRecordedEventAttributes) {
        let proto::MarkerRecordedEventAttributes { marker_name, mut details, failure, .. } = marker;
        let data: Option<serde_json::Value> = details
            .remove("data")
            .or_else(|| details.remove("patch-data"))
            .map(|data| first_from_proto(Some(data)))
            .and_then(|data| serde_json::from_str(data.as_text()?).ok());
        let word = |name: &str| data.as_ref().and_then(|data| data.get(name)?.as_str().map(str::to_owned));
        match marker_name.as_str() {
            PATCH => {
                let kind = word("id").map(|patch| EventKind::Patched { patch: patch.into() });
                self.push(at, turn, kind);
            }
            LOCAL_ACTIVITY => {
                let name = word("activity_type").unwrap_or_default();
                let (operation, name) = match name.strip_prefix(SIDE_EFFECT) {
                    Some(name) => (OperationKind::SideEffect, name.to_owned()),
                    None => (OperationKind::LocalActivity, name),
                };
                let start = OperationStart::new(seq(id), operation, name.into());
                let result = match failure {
                    Some(failure) => Err(failure_from_proto(failure)),
                    None => Ok(first_from_proto(details.remove("result"))),
                };
                let attempts = data.as_ref().and_then(|data| data.get("attempt")?.as_u64()).unwrap_or(1);
                self.push(at, turn, Some(EventKind::OperationStarted(Box::new(start))));
                self.push(
                    at,
                    turn + 1,
                    Some(EventKind::OperationEnded {
                        seq: seq(id),
                        result,
                        attempts: u32::try_from(attempts).unwrap_or(1),
                        last_failure: None,
                    }),
                );
            }
            _ => {}
        }
    }
}

fn seq(event_id: i64) -> Seq {
    Seq(u64::try_from(event_id).unwrap_or_default())
}

fn text_of(payload: common::Payload) -> Option<String> {
    serde_json::from_str(payload_from_proto(payload).as_text()?).ok()
}

fn name_of(kind: Option<common::WorkflowType>) -> Name {
    kind.unwrap_or_default().name.into()
}

/// Whether the event is a decision of the workflow, which the server records right behind the task that made it.
fn decided_by_workflow(event: Option<&Attributes>) -> bool {
    use Attributes as A;
    matches!(
        event,
        Some(
            A::ActivityTaskScheduledEventAttributes(_)
                | A::ActivityTaskCancelRequestedEventAttributes(_)
                | A::TimerStartedEventAttributes(_)
                | A::TimerCanceledEventAttributes(_)
                | A::MarkerRecordedEventAttributes(_)
                | A::StartChildWorkflowExecutionInitiatedEventAttributes(_)
                | A::SignalExternalWorkflowExecutionInitiatedEventAttributes(_)
                | A::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(_)
                | A::NexusOperationScheduledEventAttributes(_)
                | A::NexusOperationCancelRequestedEventAttributes(_)
                | A::UpsertWorkflowSearchAttributesEventAttributes(_)
                | A::WorkflowPropertiesModifiedEventAttributes(_)
                | A::WorkflowExecutionUpdateAcceptedEventAttributes(_)
                | A::WorkflowExecutionUpdateCompletedEventAttributes(_)
                | A::WorkflowExecutionCompletedEventAttributes(_)
                | A::WorkflowExecutionFailedEventAttributes(_)
                | A::WorkflowExecutionCanceledEventAttributes(_)
                | A::WorkflowExecutionContinuedAsNewEventAttributes(_)
        )
    )
}

/// The start of an operation.
fn started(id: i64, event: &Attributes, summary: Option<String>) -> Option<OperationStart> {
    use Attributes as A;
    let start = |operation, name: Name| OperationStart::new(seq(id), operation, name);
    let mut begun = match event {
        A::ActivityTaskScheduledEventAttributes(a) => {
            start(OperationKind::Activity, a.activity_type.clone().unwrap_or_default().name.into())
        }
        A::TimerStartedEventAttributes(_) => start(OperationKind::Timer, Name::default()),
        A::StartChildWorkflowExecutionInitiatedEventAttributes(a) => {
            start(OperationKind::Child, name_of(a.workflow_type.clone()))
        }
        A::SignalExternalWorkflowExecutionInitiatedEventAttributes(a) => {
            start(OperationKind::SignalExternal, a.signal_name.clone().into())
        }
        A::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(_) => {
            start(OperationKind::CancelExternal, Name::default())
        }
        A::NexusOperationScheduledEventAttributes(a) => {
            start(OperationKind::Nexus, format!("{}/{}", a.service, a.operation).into())
        }
        _ => return None,
    };
    begun.input = input_of(event);
    begun.target = target_of(event);
    if let A::TimerStartedEventAttributes(timer) = event {
        begun.duration = timer.start_to_fire_timeout.map(duration_from_proto);
    }
    begun.summary = summary;
    Some(begun)
}

/// The arguments of an operation.
fn input_of(event: &Attributes) -> Vec<Payload> {
    use Attributes as A;
    match event {
        A::ActivityTaskScheduledEventAttributes(a) => payloads_from_proto(a.input.clone()),
        A::StartChildWorkflowExecutionInitiatedEventAttributes(a) => payloads_from_proto(a.input.clone()),
        A::SignalExternalWorkflowExecutionInitiatedEventAttributes(a) => payloads_from_proto(a.input.clone()),
        A::NexusOperationScheduledEventAttributes(a) => a.input.clone().map(payload_from_proto).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The run that an operation is about.
fn target_of(event: &Attributes) -> Option<RunRef> {
    use Attributes as A;
    match event {
        A::StartChildWorkflowExecutionInitiatedEventAttributes(a) => Some(RunRef::latest(a.workflow_id.clone())),
        A::SignalExternalWorkflowExecutionInitiatedEventAttributes(a) => a.workflow_execution.clone().map(target),
        A::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(a) => {
            a.workflow_execution.clone().map(target)
        }
        _ => None,
    }
}

fn target(run: common::WorkflowExecution) -> RunRef {
    match run.run_id.is_empty() {
        true => RunRef::latest(run.workflow_id),
        false => RunRef::exact(run.workflow_id, run.run_id),
    }
}

/// The operation that an event ends, and its result.
fn end_of_operation(event: &Attributes) -> Option<(i64, Result<Payload, Failure>)> {
    use Attributes as A;
    let failed =
        |failure: &Option<crate::proto::failure::Failure>| Err(failure_from_proto(failure.clone().unwrap_or_default()));
    let cancelled = || Err(Failure::new(FailureKind::Cancelled, "it was cancelled"));
    Some(match event {
        A::ActivityTaskCompletedEventAttributes(a) => (a.scheduled_event_id, Ok(first_from_proto(a.result.clone()))),
        A::ActivityTaskFailedEventAttributes(a) => (a.scheduled_event_id, failed(&a.failure)),
        A::ActivityTaskTimedOutEventAttributes(a) => (a.scheduled_event_id, failed(&a.failure)),
        A::ActivityTaskCanceledEventAttributes(a) => (a.scheduled_event_id, cancelled()),
        A::TimerFiredEventAttributes(a) => (a.started_event_id, Ok(Payload::empty())),
        A::ChildWorkflowExecutionCompletedEventAttributes(a) => {
            (a.initiated_event_id, Ok(first_from_proto(a.result.clone())))
        }
        A::ChildWorkflowExecutionFailedEventAttributes(a) => (a.initiated_event_id, failed(&a.failure)),
        A::ChildWorkflowExecutionCanceledEventAttributes(a) => (a.initiated_event_id, cancelled()),
        A::ChildWorkflowExecutionTimedOutEventAttributes(a) => {
            (a.initiated_event_id, Err(Failure::application("a timeout of the child passed")))
        }
        A::ChildWorkflowExecutionTerminatedEventAttributes(a) => {
            (a.initiated_event_id, Err(Failure::new(FailureKind::Terminated, "the child was terminated")))
        }
        A::StartChildWorkflowExecutionFailedEventAttributes(a) => {
            (a.initiated_event_id, Err(refused("the child cannot be started", a.cause().as_str_name())))
        }
        A::ExternalWorkflowExecutionSignaledEventAttributes(a) => (a.initiated_event_id, Ok(Payload::empty())),
        A::ExternalWorkflowExecutionCancelRequestedEventAttributes(a) => (a.initiated_event_id, Ok(Payload::empty())),
        A::SignalExternalWorkflowExecutionFailedEventAttributes(a) => {
            (a.initiated_event_id, Err(refused("the signal cannot be delivered", a.cause().as_str_name())))
        }
        A::RequestCancelExternalWorkflowExecutionFailedEventAttributes(a) => {
            (a.initiated_event_id, Err(refused("the request cannot be delivered", a.cause().as_str_name())))
        }
        A::NexusOperationCompletedEventAttributes(a) => {
            (a.scheduled_event_id, Ok(a.result.clone().map(payload_from_proto).unwrap_or_default()))
        }
        A::NexusOperationFailedEventAttributes(a) => (a.scheduled_event_id, failed(&a.failure)),
        A::NexusOperationCanceledEventAttributes(a) => (a.scheduled_event_id, failed(&a.failure)),
        A::NexusOperationTimedOutEventAttributes(a) => (a.scheduled_event_id, failed(&a.failure)),
        _ => return None,
    })
}

fn refused(what: &str, cause: &str) -> Failure {
    Failure::application(format!("{what}: {cause}"))
}

/// Messages that others sent the run, and its answers.
fn message(event: &Attributes) -> Option<EventKind> {
    use Attributes as A;
    Some(match event {
        A::WorkflowExecutionStartedEventAttributes(a) => EventKind::Started {
            workflow: name_of(a.workflow_type.clone()),
            input: payloads_from_proto(a.input.clone()),
        },
        A::WorkflowExecutionSignaledEventAttributes(a) => {
            EventKind::Signalled { signal: a.signal_name.clone().into(), input: payloads_from_proto(a.input.clone()) }
        }
        A::WorkflowExecutionCancelRequestedEventAttributes(a) => EventKind::CancelRequested { reason: a.cause.clone() },
        A::WorkflowExecutionUpdateAcceptedEventAttributes(a) => update_received(a.accepted_request.clone()?),
        A::WorkflowExecutionUpdateCompletedEventAttributes(a) => EventKind::UpdateCompleted {
            id: a.meta.clone().unwrap_or_default().update_id.into(),
            result: match a.outcome.clone().and_then(|outcome| outcome.value) {
                Some(update::outcome::Value::Failure(failure)) => Err(failure_from_proto(failure)),
                Some(update::outcome::Value::Success(result)) => Ok(first_from_proto(Some(result))),
                None => Ok(Payload::empty()),
            },
        },
        A::ChildWorkflowExecutionStartedEventAttributes(a) => EventKind::OperationAccepted {
            seq: seq(a.initiated_event_id),
            run_id: a.workflow_execution.clone().map(|run| Name::from(run.run_id)),
        },
        A::NexusOperationStartedEventAttributes(a) => {
            EventKind::OperationAccepted { seq: seq(a.scheduled_event_id), run_id: None }
        }
        A::ActivityTaskCancelRequestedEventAttributes(a) => {
            EventKind::OperationCancelled { seq: seq(a.scheduled_event_id) }
        }
        A::TimerCanceledEventAttributes(a) => EventKind::OperationCancelled { seq: seq(a.started_event_id) },
        A::NexusOperationCancelRequestedEventAttributes(a) => {
            EventKind::OperationCancelled { seq: seq(a.scheduled_event_id) }
        }
        A::UpsertWorkflowSearchAttributesEventAttributes(a) => {
            annotated(a.search_attributes.clone().unwrap_or_default().indexed_fields.into_keys())?
        }
        A::WorkflowPropertiesModifiedEventAttributes(a) => {
            annotated(a.upserted_memo.clone().unwrap_or_default().fields.into_keys())?
        }
        A::WorkflowTaskFailedEventAttributes(a)
            if a.cause() == crate::proto::enums::WorkflowTaskFailedCause::ResetWorkflow =>
        {
            EventKind::Reset
        }
        _ => return None,
    })
}

/// The server records an update when it is accepted, with all that was sent.
fn update_received(request: update::Request) -> EventKind {
    let input = request.input.unwrap_or_default();
    EventKind::UpdateReceived {
        id: request.meta.unwrap_or_default().update_id.into(),
        update: input.name.into(),
        input: payloads_from_proto(input.args),
    }
}

/// None for the attribute that Temporal's core keeps for patches.
fn annotated(names: impl Iterator<Item = String>) -> Option<EventKind> {
    let mut names: Vec<Name> = names.filter(|name| name != "TemporalChangeVersion").map(Name::from).collect();
    names.sort();
    (!names.is_empty()).then_some(EventKind::Annotated { names })
}

fn closed(event: Attributes) -> Option<EventKind> {
    let end = end_of(event)?;
    let result = end.result.filter(|_| end.status != Status::ContinuedAsNew || end.next_run_id.is_some());
    Some(EventKind::Closed { status: end.status, result, next_run_id: end.next_run_id })
}
