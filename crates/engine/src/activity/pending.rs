//! Pending activities, as callers see them.

use std::fmt;

use dacapo_core::{Failure, Name, Payload, Seq, Timestamp};

use crate::activity::task::{Task, TaskState};

/// What a pending activity is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityState {
    /// It is pending; only the process that serves it knows more.
    Pending,
    /// It waits for its next attempt.
    Waiting,
    /// It waits for a free place.
    Ready,
    /// It is being tried.
    Running,
    /// Its code has ended, and the holder of its token completes it.
    External,
    /// Its type is not served here.
    Unserved,
    /// Its process died too often while it ran: it waits until it is released.
    Quarantined,
}

impl fmt::Display for ActivityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Waiting => "waits for its next attempt",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::External => "waits to be completed by its token",
            Self::Unserved => "no activity of this type is served here",
            Self::Quarantined => "quarantined: it is not tried until it is released",
        })
    }
}

/// A pending activity.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingActivity {
    /// Its seq.
    pub seq: Seq,
    /// Its id, the stable part of the idempotency key.
    pub id: Name,
    /// Its type.
    pub activity: Name,
    /// The queue it waits in.
    pub queue: Name,
    /// What it is doing.
    pub state: ActivityState,
    /// The attempt that runs, or that comes next, from 1.
    pub attempt: u32,
    /// How many attempts there are at most; 0 means no limit.
    pub attempts: u32,
    /// Which task goes first.
    pub priority: i32,
    /// When it was scheduled.
    pub scheduled: Timestamp,
    /// When the attempt that runs was started.
    pub started: Option<Timestamp>,
    /// When it is tried again.
    pub next_attempt: Option<Timestamp>,
    /// When the attempt that runs last reported.
    pub last_heartbeat: Option<Timestamp>,
    /// What was last reported of its progress.
    pub details: Option<Payload>,
    /// How the last attempt failed.
    pub last_failure: Option<Failure>,
}

impl PendingActivity {
    pub(crate) fn of(task: &Task) -> Self {
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
        Self {
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
}
