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
    let command = &task.command;
    let mut pending = PendingActivity::new(command.seq, command.id.to_string().into(), command.activity.clone());
    pending.summary.clone_from(&command.summary);
    pending.queue = task.queue().clone();
    pending.state = state;
    pending.attempt = task.attempt;
    pending.attempts = command.retry.as_ref().map_or(0, |retry| retry.attempts);
    pending.priority = task.priority;
    pending.scheduled = task.scheduled;
    (pending.started, pending.next_attempt, pending.last_heartbeat) = (started, next_attempt, last_heartbeat);
    pending.details.clone_from(&task.details);
    pending.last_failure.clone_from(&task.failure);
    pending
}
