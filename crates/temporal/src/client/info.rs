//! The server's own description of a run.

use dacapo_client::{Result, RunRef};

use super::refusals::{not_found, refused_for};
use super::rpc::{Rpc, execution, send};
use crate::proto::service::{DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse};
use crate::proto::workflow::WorkflowExecutionInfo;

/// Returns the server's description of a run.
pub(super) async fn ask(rpc: &Rpc, run: &RunRef) -> Result<DescribeWorkflowExecutionResponse> {
    let request = DescribeWorkflowExecutionRequest { namespace: rpc.namespace(), execution: Some(execution(run)) };
    match send!(rpc, describe_workflow_execution, request).await {
        Ok(answer) => Ok(answer),
        Err(status) => Err(refused_for(status, rpc, run).await),
    }
}

pub(super) async fn info_of(rpc: &Rpc, run: &RunRef) -> Result<WorkflowExecutionInfo> {
    ask(rpc, run).await?.workflow_execution_info.ok_or_else(|| not_found(run))
}
