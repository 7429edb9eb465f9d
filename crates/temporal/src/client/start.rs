//! Starting runs.

use dacapo_client::{Error, IdConflict, Result, RunRef, StartRun, Started};
use dacapo_core::{Headers, Name, Payload};
use uuid::Uuid;

use super::history::first_event;
use super::refusals::{already_started, refused};
use super::rpc::{Rpc, send};
use crate::convert::{
    attributes_to_proto, duration_to_proto, headers_to_proto, id_reuse_to_proto, map_to_proto, payload_from_proto,
    payloads_to_proto, retry_to_proto,
};
use crate::flags::flags_of;
use crate::proto::enums::WorkflowIdConflictPolicy;
use crate::proto::history::{HistoryEvent, history_event::Attributes};
use crate::proto::service::StartWorkflowExecutionRequest;
use crate::proto::{common, taskqueue};
use crate::reserved::{self, PINS, START};

/// Starts a run, or finds it started.
pub(super) async fn start(rpc: &Rpc, start: StartRun) -> Result<Started> {
    reserved::check_headers(&start.headers)?;
    let workflow_id = match start.workflow_id.is_empty() {
        true => Name::from(Uuid::now_v7().to_string()),
        false => start.workflow_id.clone(),
    };
    // The server answers a start of a known request id as it answered the first one, so the run itself is asked who started it.
    let mark = start.request_id.is_some().then(|| Payload::json(format!("\"{}\"", Uuid::now_v7())));
    let request = request(rpc, &workflow_id, start, mark.clone());
    match send!(rpc, start_workflow_execution, request).await {
        Ok(answer) => {
            let run = RunRef::exact(workflow_id, answer.run_id);
            let is_new = match mark {
                Some(mark) if answer.started => first_event(rpc, &run).await?.as_ref().and_then(mark_of) == Some(mark),
                _ => answer.started,
            };
            Ok(Started::new(run, is_new))
        }
        Err(status) => Err(match already_started(&status) {
            Some(in_use) => in_use_error(workflow_id, in_use.run_id, status.message()),
            None => refused(&status, rpc.cluster()),
        }),
    }
}

fn in_use_error(workflow_id: Name, run_id: String, message: &str) -> Error {
    let reason = format!(
        "workflow id {workflow_id:?} is in use by run {run_id}: {message}. Choose another id, or say with `id_conflict` or `id_reuse` \
         what the start does then"
    );
    Error::WorkflowIdInUse { workflow_id, run_id: run_id.into(), reason }
}

fn mark_of(event: &HistoryEvent) -> Option<Payload> {
    match event.attributes.as_ref()? {
        Attributes::WorkflowExecutionStartedEventAttributes(started) => {
            started.header.as_ref()?.fields.get(START).cloned().map(payload_from_proto)
        }
        _ => None,
    }
}

fn request(rpc: &Rpc, workflow_id: &Name, start: StartRun, mark: Option<Payload>) -> StartWorkflowExecutionRequest {
    let mut headers = start.headers;
    if let Some(pins) = &start.pins {
        let flags = serde_json::to_string(&flags_of(pins)).expect("a list of numbers");
        headers.insert(PINS.into(), Payload::json(flags));
    }
    headers.extend(mark.map(|mark| (START.into(), mark)));
    let conflict = match start.id_conflict {
        IdConflict::Fail => WorkflowIdConflictPolicy::Fail,
        IdConflict::UseExisting => WorkflowIdConflictPolicy::UseExisting,
        IdConflict::TerminateExisting => WorkflowIdConflictPolicy::TerminateExisting,
    };
    let queue = start.queue.as_ref().unwrap_or(&rpc.cluster().queue);
    StartWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_id: workflow_id.to_string(),
        workflow_type: Some(common::WorkflowType { name: start.workflow.to_string() }),
        task_queue: Some(taskqueue::TaskQueue { name: queue.to_string(), ..taskqueue::TaskQueue::default() }),
        input: payloads_to_proto(&start.input),
        workflow_execution_timeout: start.execution_timeout.map(duration_to_proto),
        workflow_run_timeout: start.run_timeout.map(duration_to_proto),
        identity: rpc.identity(),
        request_id: start.request_id.map_or_else(|| Uuid::now_v7().to_string(), |id| id.to_string()),
        workflow_id_reuse_policy: id_reuse_to_proto(start.id_reuse) as i32,
        workflow_id_conflict_policy: conflict as i32,
        retry_policy: start.retry.as_ref().map(retry_to_proto),
        memo: (!start.memo.is_empty()).then(|| common::Memo { fields: map_to_proto(&start.memo) }),
        search_attributes: attributes_to_proto(start.attributes.into_iter().map(|(name, value)| (name, Some(value)))),
        header: header(&headers),
        workflow_start_delay: start.delay.map(duration_to_proto),
        ..StartWorkflowExecutionRequest::default()
    }
}

/// None for no headers at all, as the server writes them.
pub(super) fn header(headers: &Headers) -> Option<common::Header> {
    (!headers.is_empty()).then(|| common::Header { fields: headers_to_proto(headers) })
}
