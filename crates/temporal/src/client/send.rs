//! Calls that change a run: signals, cancellation, termination, deletion.

use dacapo_client::{Error, Result, RunRef, SendSignal};
use uuid::Uuid;

use super::info::info_of;
use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use super::start::header;
use crate::convert::payloads_to_proto;
use crate::proto::service::{
    DeleteWorkflowExecutionRequest, RequestCancelWorkflowExecutionRequest, SignalWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
};
use crate::reserved;

/// A key under which the server takes a request once, however often it is sent.
fn key() -> String {
    Uuid::now_v7().to_string()
}

pub(super) async fn signal(rpc: &Rpc, run: &RunRef, signal: SendSignal) -> Result<()> {
    reserved::check_name("signal", &signal.name)?;
    reserved::check_headers(&signal.headers)?;
    let request = SignalWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_execution: Some(execution(run)),
        signal_name: signal.name.to_string(),
        input: payloads_to_proto(&signal.input),
        identity: rpc.identity(),
        request_id: signal.request_id.map_or_else(key, |id| id.to_string()),
        header: header(&signal.headers),
        ..SignalWorkflowExecutionRequest::default()
    };
    match send!(rpc, signal_workflow_execution, request).await {
        Ok(_) => Ok(()),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}

pub(super) async fn cancel(rpc: &Rpc, run: &RunRef, reason: String) -> Result<()> {
    let request = RequestCancelWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_execution: Some(execution(run)),
        identity: rpc.identity(),
        request_id: key(),
        reason,
        ..RequestCancelWorkflowExecutionRequest::default()
    };
    match send!(rpc, request_cancel_workflow_execution, request).await {
        Ok(_) => Ok(()),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}

pub(super) async fn terminate(rpc: &Rpc, run: &RunRef, reason: String) -> Result<()> {
    let request = TerminateWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_execution: Some(execution(run)),
        identity: rpc.identity(),
        reason,
        ..TerminateWorkflowExecutionRequest::default()
    };
    match send!(rpc, terminate_workflow_execution, request).await {
        Ok(_) => Ok(()),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}

/// Deletes a closed run. The server also deletes open ones, which no other backend does.
pub(super) async fn delete(rpc: &Rpc, run: &RunRef) -> Result<()> {
    let info = info_of(rpc, run).await?;
    if info.close_time.is_none() {
        return Err(Error::RunOpen);
    }
    let request = DeleteWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_execution: info.execution.or_else(|| Some(execution(run))),
    };
    match send!(rpc, delete_workflow_execution, request).await {
        Ok(_) => Ok(()),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}
