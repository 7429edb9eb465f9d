//! The end of a run, as its last event says it.

use dacapo_client::{Result, RunRef, Status};
use dacapo_core::{Failure, FailureKind, Name, Payload, TimeoutKind};

use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use crate::convert::{failure_from_proto, first_from_proto, payloads_from_proto};
use crate::proto::common::Payloads;
use crate::proto::enums::HistoryEventFilterType;
use crate::proto::history::history_event::Attributes;
use crate::proto::service::GetWorkflowExecutionHistoryRequest;

/// The end of one run.
pub(super) struct End {
    pub(super) status: Status,
    /// None if the run continued as new.
    pub(super) result: Option<Result<Payload, Failure>>,
    /// The run that goes on.
    pub(super) next_run_id: Option<Name>,
}

/// Returns the end of a run; none if it is open and is not waited for.
pub(super) async fn close_of(rpc: &Rpc, run: &RunRef, wait: bool) -> Result<Option<End>> {
    let mut next_page_token = Vec::new();
    loop {
        let request = GetWorkflowExecutionHistoryRequest {
            namespace: rpc.namespace(),
            execution: Some(execution(run)),
            next_page_token,
            wait_new_event: wait,
            history_event_filter_type: HistoryEventFilterType::CloseEvent as i32,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let page = match send!(rpc, get_workflow_execution_history, request).await {
            Ok(page) => page,
            Err(status) => return Err(refused_for(status, rpc, run).await),
        };
        let events = page.history.unwrap_or_default().events;
        if let Some(end) = events.into_iter().filter_map(|event| event.attributes).find_map(end_of) {
            return Ok(Some(end));
        }
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return Ok(None);
        }
    }
}

/// None if the event closes no run.
pub(super) fn end_of(event: Attributes) -> Option<End> {
    let next = |run_id: String| (!run_id.is_empty()).then(|| Name::from(run_id));
    let end = |status, result, next_run_id| Some(End { status, result: Some(result), next_run_id });
    match event {
        Attributes::WorkflowExecutionCompletedEventAttributes(done) => {
            end(Status::Completed, Ok(first_from_proto(done.result)), next(done.new_execution_run_id))
        }
        Attributes::WorkflowExecutionFailedEventAttributes(failed) => {
            let failure = failure_from_proto(failed.failure.unwrap_or_default());
            let next = next(failed.new_execution_run_id);
            // A run that its retry policy begins again goes on, as everywhere else.
            let status = if next.is_some() { Status::ContinuedAsNew } else { Status::Failed };
            end(status, Err(failure), next)
        }
        Attributes::WorkflowExecutionTimedOutEventAttributes(timed_out) => {
            let failure = Failure::new(FailureKind::Timeout(TimeoutKind::Deadline), "a timeout of the run passed");
            end(Status::TimedOut, Err(failure), next(timed_out.new_execution_run_id))
        }
        Attributes::WorkflowExecutionTerminatedEventAttributes(terminated) => {
            end(Status::Terminated, Err(Failure::new(FailureKind::Terminated, terminated.reason)), None)
        }
        Attributes::WorkflowExecutionCanceledEventAttributes(cancelled) => {
            end(Status::Cancelled, Err(cancelled_with(cancelled.details)), None)
        }
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(continued) => Some(End {
            status: Status::ContinuedAsNew,
            result: None,
            next_run_id: next(continued.new_execution_run_id),
        }),
        _ => None,
    }
}

/// The server keeps details of a cancelled run and no failure: ours are its text.
fn cancelled_with(details: Option<Payloads>) -> Failure {
    let details = payloads_from_proto(details);
    let text = details.first().and_then(Payload::as_text).and_then(|text| serde_json::from_str::<String>(text).ok());
    Failure::new(FailureKind::Cancelled, text.unwrap_or_else(|| "the workflow was cancelled".to_owned()))
}
