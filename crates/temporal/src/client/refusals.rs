//! What a refusal of the server means to a caller.

use dacapo_client::{Error, RunRef};
use dacapo_core::Failure;
use prost::Message;
use prost_wkt_types::Any;
use tonic::{Code, Status};

use super::rpc::{Rpc, execution, send};
use crate::connect::Cluster;
use crate::convert::{failure_from_proto, status_from_proto};
use crate::proto::errors::{
    NamespaceNotFoundFailure, QueryFailedFailure, WorkflowExecutionAlreadyStartedFailure, WorkflowNotReadyFailure,
};
use crate::proto::service::DescribeWorkflowExecutionRequest;

/// The form in which servers of this protocol attach data to a refusal.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// The data attached to a refusal, if it is of this type.
fn detail<M: Message + Default>(status: &Status, name: &str) -> Option<M> {
    let attached = RpcStatus::decode(status.details()).ok()?;
    let found = attached.details.into_iter().find(|detail| detail.type_url.ends_with(name))?;
    M::decode(found.value.as_slice()).ok()
}

/// The run that has the workflow id of a start.
pub(super) fn already_started(status: &Status) -> Option<WorkflowExecutionAlreadyStartedFailure> {
    detail(status, ".WorkflowExecutionAlreadyStartedFailure").filter(|_| status.code() == Code::AlreadyExists)
}

/// The error of a call that names no run.
pub(super) fn refused(status: &Status, cluster: &Cluster) -> Error {
    let (message, address) = (status.message(), cluster.address());
    if detail::<NamespaceNotFoundFailure>(status, ".NamespaceNotFoundFailure").is_some() {
        return Error::Refused(format!(
            "namespace {:?} does not exist on the Temporal cluster at {address}: create it with `temporal operator namespace \
             create`, or name another one",
            cluster.namespace()
        ));
    }
    match status.code() {
        Code::InvalidArgument => Error::InvalidArgument(format!("the Temporal cluster refuses the call: {message}")),
        Code::PermissionDenied | Code::Unauthenticated => Error::Refused(format!(
            "the Temporal cluster at {address} does not allow this call: {message}. Check the API key or certificate, and its rights \
             in namespace {:?}",
            cluster.namespace()
        )),
        Code::ResourceExhausted => {
            Error::Busy(format!("the Temporal cluster limits this call: {message}. Call again later"))
        }
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Error::Unavailable(format!(
            "the Temporal cluster at {address} cannot be reached: {message}. Whether the call was carried out is not known; call \
             again when the server runs"
        )),
        _ => Error::Refused(format!("the Temporal cluster refuses the call: {message} ({:?})", status.code())),
    }
}

/// The error of a call that names a run.
pub(super) async fn refused_for(status: Status, rpc: &Rpc, run: &RunRef) -> Error {
    if let Some(query) = detail::<QueryFailedFailure>(&status, ".QueryFailedFailure") {
        let failure = query.failure.map_or_else(|| Failure::application(status.message()), failure_from_proto);
        return Error::QueryFailed(Box::new(failure));
    }
    if detail::<WorkflowNotReadyFailure>(&status, ".WorkflowNotReadyFailure").is_some() {
        return Error::Stuck(status.message().to_owned());
    }
    match status.code() {
        Code::NotFound => missing(status, rpc, run).await,
        Code::InvalidArgument if status.message().contains("Invalid RunId") => not_found(run),
        _ => refused(&status, rpc.cluster()),
    }
}

/// The server answers "not found" for closed runs as well, so their status says which it is.
async fn missing(status: Status, rpc: &Rpc, run: &RunRef) -> Error {
    let describe = DescribeWorkflowExecutionRequest { namespace: rpc.namespace(), execution: Some(execution(run)) };
    match send!(rpc, describe_workflow_execution, describe).await {
        Ok(described) => {
            let found = described.workflow_execution_info.map(|info| status_from_proto(info.status()));
            match found {
                Some(closed) if !closed.is_open() => {
                    Error::Closed { workflow_id: run.workflow_id.clone(), status: closed }
                }
                _ => Error::Refused(format!("the Temporal cluster refuses the call: {}", status.message())),
            }
        }
        Err(other) if other.code() == Code::NotFound => {
            match detail::<NamespaceNotFoundFailure>(&other, ".NamespaceNotFoundFailure") {
                Some(_) => refused(&other, rpc.cluster()),
                None => not_found(run),
            }
        }
        Err(other) => refused(&other, rpc.cluster()),
    }
}

pub(super) fn not_found(run: &RunRef) -> Error {
    Error::NotFound { workflow_id: run.workflow_id.clone(), run_id: run.run_id.clone() }
}

/// Whether the server could not be reached, so that a caller who waits may go on waiting.
pub(super) fn is_outage(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Busy(_))
}
