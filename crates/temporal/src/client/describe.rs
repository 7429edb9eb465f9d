//! Descriptions of runs.

use dacapo_client::{ActivityState, Description, PendingActivity, Result, RunRef};
use dacapo_core::{Seq, Timestamp};

use super::end::close_of;
use super::history::count_turns;
use super::info::ask;
use super::refusals::not_found;
use super::rpc::Rpc;
use super::stuck;
use crate::convert::{
    attributes_from_proto, failure_from_proto, map_from_proto, payloads_from_proto, status_from_proto, time_from_proto,
};
use crate::proto::enums::PendingActivityState;
use crate::proto::workflow::{PendingActivityInfo, WorkflowExecutionInfo};

/// The longest history that a description reads to count the turns of a run: one page.
const COUNTED_EVENTS: i64 = 1_000;

pub(super) async fn describe(rpc: &Rpc, run: &RunRef) -> Result<Description> {
    let answer = ask(rpc, run).await?;
    let Some(info) = answer.workflow_execution_info.clone() else { return Err(not_found(run)) };
    let length = info.history_length;
    let mut description = description_of(info);
    let exact = description.reference();
    description.pending = answer.pending_activities.iter().cloned().map(pending).collect();
    for activity in &mut description.pending {
        if activity.queue.is_empty() {
            activity.queue = description.queue.clone();
        }
    }
    match description.status.is_open() {
        true => description.stuck = stuck::from(rpc, &exact, answer.pending_workflow_task.as_ref()).await?,
        false => {
            if let Some(end) = close_of(rpc, &exact, false).await? {
                description.next_run_id = end.next_run_id;
                description.status = end.status;
                description.result = end.result.filter(|_| description.next_run_id.is_none());
            }
        }
    }
    if length <= COUNTED_EVENTS {
        description.turns = count_turns(rpc, &exact).await?;
    }
    Ok(description)
}

/// The part of a description that lists of the server have as well.
pub(super) fn description_of(info: WorkflowExecutionInfo) -> Description {
    let status = status_from_proto(info.status());
    let run = info.execution.unwrap_or_default();
    let mut description = Description::new(run.workflow_id.into(), run.run_id.into());
    description.first_run_id = info.first_run_id.into();
    description.parent = info.parent_execution.map(|parent| RunRef::exact(parent.workflow_id, parent.run_id));
    description.workflow = info.r#type.unwrap_or_default().name.into();
    description.queue = info.task_queue.into();
    description.status = status;
    description.started = info.start_time.map(time_from_proto).unwrap_or_default();
    description.closed = info.close_time.map(time_from_proto);
    description.memo = map_from_proto(info.memo.unwrap_or_default().fields);
    description.attributes = attributes_from_proto(info.search_attributes);
    description
}

fn pending(info: PendingActivityInfo) -> PendingActivity {
    let state = match info.state() {
        PendingActivityState::Started | PendingActivityState::CancelRequested => ActivityState::Running,
        PendingActivityState::Scheduled if info.attempt > 1 => ActivityState::Waiting,
        PendingActivityState::Scheduled => ActivityState::Ready,
        _ => ActivityState::Pending,
    };
    let name = info.activity_type.unwrap_or_default().name;
    let mut activity = PendingActivity::new(seq_of(&info.activity_id), info.activity_id.into(), name.into());
    activity.state = state;
    activity.attempt = u32::try_from(info.attempt).unwrap_or(1).max(1);
    activity.priority = info.priority.map(|priority| priority.priority_key).unwrap_or_default();
    activity.scheduled = info.scheduled_time.map(time_from_proto).unwrap_or_default();
    activity.started = info.last_started_time.map(time_from_proto).filter(|_| state == ActivityState::Running);
    activity.next_attempt = info.next_attempt_schedule_time.map(time_from_proto);
    activity.last_heartbeat = info.last_heartbeat_time.map(time_from_proto).filter(|at| *at > Timestamp::default());
    activity.details = payloads_from_proto(info.heartbeat_details).into_iter().next();
    activity.last_failure = info.last_failure.map(failure_from_proto);
    activity
}

/// Ids of other SDKs are numbers; ours name the operation by a text that no number can be read from.
fn seq_of(id: &str) -> Seq {
    Seq(id.parse().unwrap_or_default())
}
