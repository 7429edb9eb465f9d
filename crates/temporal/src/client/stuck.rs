//! Why a run cannot be played. The server tries its workflow task again and again, and its history keeps why the first of these
//! tries failed.

use dacapo_client::{Result, RunRef, Stuck, StuckCause};
use dacapo_core::Timestamp;

use super::info::ask;
use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use crate::convert::{failure_from_proto, time_from_proto};
use crate::player;
use crate::proto::enums::WorkflowTaskFailedCause as Cause;
use crate::proto::history::history_event::Attributes;
use crate::proto::history::{HistoryEvent, WorkflowTaskFailedEventAttributes};
use crate::proto::service::GetWorkflowExecutionHistoryReverseRequest;
use crate::proto::workflow::PendingWorkflowTaskInfo;

/// How many of the last events are looked at: the task that failed is among them, unless more messages than this came since.
const LAST_EVENTS: i32 = 200;

/// Returns why a run is stuck, if it is.
pub(super) async fn stuck_of(rpc: &Rpc, run: &RunRef) -> Result<Option<Stuck>> {
    let described = ask(rpc, run).await?;
    from(rpc, run, described.pending_workflow_task.as_ref()).await
}

/// Returns why a run is stuck whose pending workflow task is this one.
pub(super) async fn from(rpc: &Rpc, run: &RunRef, task: Option<&PendingWorkflowTaskInfo>) -> Result<Option<Stuck>> {
    let Some(task) = task.filter(|task| task.attempt > 1) else { return Ok(None) };
    let request = GetWorkflowExecutionHistoryReverseRequest {
        namespace: rpc.namespace(),
        execution: Some(execution(run)),
        maximum_page_size: LAST_EVENTS,
        ..GetWorkflowExecutionHistoryReverseRequest::default()
    };
    let events = match send!(rpc, get_workflow_execution_history_reverse, request).await {
        Ok(page) => page.history.unwrap_or_default().events,
        Err(status) => return Err(refused_for(status, rpc, run).await),
    };
    let stuck = last_failure(events).map(|(since, failed)| Stuck {
        attempts: u32::try_from(task.attempt - 1).unwrap_or_default(),
        retry: task.scheduled_time.map(time_from_proto).unwrap_or_default(),
        ..cause_of(since, failed)
    });
    Ok(stuck)
}

/// The failure of the task that is tried again; none if the last one completed or only took too long.
fn last_failure(newest_first: Vec<HistoryEvent>) -> Option<(Timestamp, WorkflowTaskFailedEventAttributes)> {
    for event in newest_first {
        let since = event.event_time.map(time_from_proto).unwrap_or_default();
        match event.attributes {
            Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) => {
                return (!is_usual(failed.cause()) && !is_cut_off(&failed)).then_some((since, failed));
            }
            Some(Attributes::WorkflowTaskCompletedEventAttributes(_)) => return None,
            _ => {}
        }
    }
    None
}

/// Causes that are part of the normal course: a message came while the task was played, a worker lost its cache, a reset.
fn is_usual(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::UnhandledCommand
            | Cause::ResetStickyTaskQueue
            | Cause::ResetWorkflow
            | Cause::ForceCloseCommand
            | Cause::FailoverCloseCommand
            | Cause::UnhandledUpdate
    )
}

/// Whether a worker of Dacapo left the task to the next one: the run is not stuck.
fn is_cut_off(failed: &WorkflowTaskFailedEventAttributes) -> bool {
    failed.failure.clone().is_some_and(|failure| player::is_task_cut_off(&failure_from_proto(failure)))
}

fn cause_of(since: Timestamp, failed: WorkflowTaskFailedEventAttributes) -> Stuck {
    let task_cause = failed.cause();
    let failure = failure_from_proto(failed.failure.unwrap_or_default());
    // A worker of Dacapo names the cause; of other workers the server's words are known alone.
    let cause = player::cause_of(&failure).unwrap_or(match task_cause {
        Cause::NonDeterministicError => StuckCause::Nondeterminism,
        Cause::GrpcMessageTooLarge | Cause::PayloadsTooLarge | Cause::RequestTooLarge => StuckCause::Limit,
        Cause::PendingActivitiesLimitExceeded
        | Cause::PendingChildWorkflowsLimitExceeded
        | Cause::PendingSignalsLimitExceeded
        | Cause::PendingRequestCancelLimitExceeded
        | Cause::PendingNexusOperationsLimitExceeded => StuckCause::Limit,
        Cause::WorkflowWorkerUnhandledFailure => StuckCause::Internal,
        _ => StuckCause::StoreRefused,
    });
    Stuck { cause, subject: String::new(), reason: failure.message, since, attempts: 0, retry: Timestamp::default() }
}
