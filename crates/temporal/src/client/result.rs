//! Waiting for the end of a run.

use std::time::Duration;

use dacapo_client::{Error, Result, RunRef, RunResult, Status};
use dacapo_core::{Failure, FailureKind, Name, Payload, TimeoutKind};

use super::refusals::{is_outage, refused_for};
use super::rpc::{Rpc, execution, send};
use super::stuck::stuck_of;
use crate::convert::{failure_from_proto, first_from_proto, payloads_from_proto};
use crate::proto::common::Payloads;
use crate::proto::enums::HistoryEventFilterType;
use crate::proto::history::history_event::Attributes;
use crate::proto::service::GetWorkflowExecutionHistoryRequest;

/// How often a run is looked at by those who also wait for it to get stuck: the server tells nobody of that.
const LOOK: Duration = Duration::from_secs(2);
/// The pause before the server is asked again after an outage.
const OUTAGE: Duration = Duration::from_secs(1);

/// The end of one run.
pub(super) struct End {
    pub(super) status: Status,
    /// None if the run continued as new.
    pub(super) result: Option<Result<Payload, Failure>>,
    /// The run that goes on.
    pub(super) next_run_id: Option<Name>,
}

/// Waits for the end of the last run of a chain. An outage of the server is waited out.
pub(super) async fn result(rpc: &Rpc, run: &RunRef) -> Result<RunResult> {
    let mut run = run.clone();
    loop {
        let End { status, result, next_run_id } = ended(rpc, &run).await?;
        match (next_run_id, result) {
            (Some(next), _) => run = RunRef::exact(run.workflow_id, next),
            (None, Some(result)) => return Ok(RunResult::new(status, result)),
            (None, None) => {
                return Err(Error::Damaged(format!(
                    "run {run} has continued as new, and the server does not say as which run"
                )));
            }
        }
    }
}

/// Waits as [`result`] does, and also until the run is stuck.
pub(super) async fn result_or_stuck(rpc: &Rpc, run: &RunRef) -> Result<RunResult> {
    let looking = async {
        loop {
            match stuck_of(rpc, run).await {
                Ok(Some(stuck)) => return Error::Stuck(stuck.reason),
                Err(error) if !is_outage(&error) => return error,
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    };
    tokio::select! {
        biased;
        ended = result(rpc, run) => ended,
        stuck = looking => Err(stuck),
    }
}

async fn ended(rpc: &Rpc, run: &RunRef) -> Result<End> {
    let mut warned = false;
    loop {
        match close_of(rpc, run, true).await {
            Err(error) if is_outage(&error) => {
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(target: "dacapo", workflow_id = %run.workflow_id, %error, "waiting goes on");
                }
                tokio::time::sleep(OUTAGE).await;
            }
            Ok(Some(end)) => return Ok(end),
            Ok(None) => {}
            Err(error) => return Err(error),
        }
    }
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
