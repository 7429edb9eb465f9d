//! Pending activities, as callers see them.

use dacapo_client::{ActivityState, PendingActivity};

use crate::activity::task::{Task, TaskState};

/// Describes a pending task.
pub(crate) fn pending_activity(task: &Task) -> PendingActivity {
    let (state, started, next_attempt, last_heartbeat) = match &task.state {
        TaskState::Waiting { until } => (ActivityState::Waiting, None, Some(*until), None),
        TaskState::Ready => (ActivityState::Ready, None, None, None),
        TaskState::Unserved => (ActivityState::Unserved, None, None, None),
        TaskState::Quarantined => (ActivityState::Quarantined, None, None, None),
        TaskState::Running(attempting) => {
            (ActivityState::Running, Some(attempting.started), None, Some(attempting.last_heartbeat))
        }
        TaskState::External(attempting) => {
            (ActivityState::External, Some(attempting.started), None, Some(attempting.last_heartbeat))
        }
    };
    PendingActivity {
        seq: task.command.seq,
        id: task.command.id.to_string().into(),
        activity: task.command.activity.clone(),
        queue: task.queue().clone(),
        state,
        attempt: task.attempt,
        attempts: task.command.retry.as_ref().map_or(0, |retry| retry.attempts),
        priority: task.priority,
        scheduled: task.scheduled,
        started,
        next_attempt,
        last_heartbeat,
        details: task.details.clone(),
        last_failure: task.failure.clone(),
    }
}
