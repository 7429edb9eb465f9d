//! Completing activities from outside, by the token of an attempt or the id of the activity.

use dacapo_client::{CompleteActivity, Error, Result, RunRef};
use dacapo_core::{Failure, FailureKind, Name, Payload};
use tonic::{Code, Status};

use super::refusals::{not_found, refused, refused_for};
use super::rpc::{Rpc, execution, send};
use crate::convert::{failure_to_proto, payloads_to_proto};
use crate::proto::common::{self, Payloads};
use crate::proto::service::{
    RecordActivityTaskHeartbeatRequest, RespondActivityTaskCanceledRequest, RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedRequest, RespondActivityTaskFailedByIdRequest, RespondActivityTaskFailedRequest,
};
use crate::token::token_from_text;

fn payloads(payload: &Payload) -> Option<Payloads> {
    payloads_to_proto(std::slice::from_ref(payload))
}

pub(super) async fn complete(rpc: &Rpc, token: &str, result: Result<Payload, Failure>) -> Result<()> {
    let token = token_from_text(token)?;
    let answer = match result {
        Ok(value) => complete_token(rpc, token, &value).await,
        Err(failure) if failure.kind == FailureKind::Cancelled => cancel_token(rpc, token, &failure).await,
        Err(failure) => fail_token(rpc, token, &failure).await,
    };
    answer.map_err(|status| of_token(&status, rpc))
}

async fn complete_token(rpc: &Rpc, task_token: Vec<u8>, value: &Payload) -> Result<(), Status> {
    let request = RespondActivityTaskCompletedRequest {
        task_token,
        result: payloads(value),
        identity: rpc.identity(),
        namespace: rpc.namespace(),
        ..RespondActivityTaskCompletedRequest::default()
    };
    send!(rpc, respond_activity_task_completed, request).await.map(drop)
}

async fn cancel_token(rpc: &Rpc, task_token: Vec<u8>, failure: &Failure) -> Result<(), Status> {
    let request = RespondActivityTaskCanceledRequest {
        task_token,
        details: payloads_to_proto(&failure.details),
        identity: rpc.identity(),
        namespace: rpc.namespace(),
        ..RespondActivityTaskCanceledRequest::default()
    };
    send!(rpc, respond_activity_task_canceled, request).await.map(drop)
}

async fn fail_token(rpc: &Rpc, task_token: Vec<u8>, failure: &Failure) -> Result<(), Status> {
    let request = RespondActivityTaskFailedRequest {
        task_token,
        failure: Some(failure_to_proto(failure)),
        identity: rpc.identity(),
        namespace: rpc.namespace(),
        ..RespondActivityTaskFailedRequest::default()
    };
    send!(rpc, respond_activity_task_failed, request).await.map(drop)
}

pub(super) async fn heartbeat(rpc: &Rpc, token: &str, details: &Payload) -> Result<Option<String>> {
    let request = RecordActivityTaskHeartbeatRequest {
        task_token: token_from_text(token)?,
        details: payloads(details),
        identity: rpc.identity(),
        namespace: rpc.namespace(),
        ..RecordActivityTaskHeartbeatRequest::default()
    };
    let answer = send!(rpc, record_activity_task_heartbeat, request).await.map_err(|status| of_token(&status, rpc))?;
    let reason = match (answer.cancel_requested, answer.activity_paused, answer.activity_reset) {
        (true, ..) => Some("the workflow no longer wants it"),
        (_, true, _) => Some("it was paused"),
        (.., true) => Some("it was reset"),
        _ => None,
    };
    Ok(reason.map(str::to_owned))
}

/// The server says of an old token no more than that there is no such attempt.
fn of_token(status: &Status, rpc: &Rpc) -> Error {
    match status.code() {
        Code::NotFound => Error::InvalidToken(format!(
            "the attempt of this token counts no more: it has a result, has timed out, was cancelled, or its run is closed ({}). Pass on \
             the token of the attempt that runs now",
            status.message()
        )),
        _ => refused(status, rpc.cluster()),
    }
}

pub(super) async fn complete_by_id(rpc: &Rpc, run: &RunRef, completion: CompleteActivity) -> Result<()> {
    let CompleteActivity { activity_id, result } = completion;
    let answer = match result {
        Ok(value) => complete_id(rpc, run, &activity_id, &value).await,
        // It fails for good: it is the activity that was named, and not one attempt of it.
        Err(failure) => fail_id(rpc, run, &activity_id, &failure.non_retryable()).await,
    };
    let Err(status) = answer else { return Ok(()) };
    let is_missing = matches!(status.code(), Code::NotFound | Code::InvalidArgument);
    Err(match refused_for(status, rpc, run).await {
        error @ Error::NotFound { .. } if error == not_found(run) => error,
        error @ Error::Closed { .. } => error,
        _ if is_missing => Error::ActivityNotFound { workflow_id: run.workflow_id.clone(), activity_id },
        other => other,
    })
}

async fn complete_id(rpc: &Rpc, run: &RunRef, activity_id: &Name, value: &Payload) -> Result<(), Status> {
    let common::WorkflowExecution { workflow_id, run_id } = execution(run);
    let request = RespondActivityTaskCompletedByIdRequest {
        namespace: rpc.namespace(),
        workflow_id,
        run_id,
        activity_id: activity_id.to_string(),
        result: payloads(value),
        identity: rpc.identity(),
        ..RespondActivityTaskCompletedByIdRequest::default()
    };
    send!(rpc, respond_activity_task_completed_by_id, request).await.map(drop)
}

async fn fail_id(rpc: &Rpc, run: &RunRef, activity_id: &Name, failure: &Failure) -> Result<(), Status> {
    let common::WorkflowExecution { workflow_id, run_id } = execution(run);
    let request = RespondActivityTaskFailedByIdRequest {
        namespace: rpc.namespace(),
        workflow_id,
        run_id,
        activity_id: activity_id.to_string(),
        failure: Some(failure_to_proto(failure)),
        identity: rpc.identity(),
        ..RespondActivityTaskFailedByIdRequest::default()
    };
    send!(rpc, respond_activity_task_failed_by_id, request).await.map(drop)
}
