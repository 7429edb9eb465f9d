//! A run as callers see it.

use std::collections::BTreeMap;
use std::fmt;

use dacapo_core::{AttributeValue, Failure, Name, Payload, Seq, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{RunRef, Status, Stuck};

/// The description of a run: its data without its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Description {
    /// The caller's name for the run.
    pub workflow_id: Name,
    /// The run id.
    pub run_id: Name,
    /// The run id of the first run of its chain.
    #[serde(default)]
    pub first_run_id: Name,
    /// The run id of the run that goes on, if this one continued as new or was retried.
    #[serde(default)]
    pub next_run_id: Option<Name>,
    /// The run that started this one as its child. Lists leave this empty.
    #[serde(default)]
    pub parent: Option<RunRef>,
    /// The workflow's type.
    #[serde(default)]
    pub workflow: Name,
    /// The task queue.
    #[serde(default)]
    pub queue: Name,
    /// The status.
    pub status: Status,
    /// When the run was started.
    #[serde(default)]
    pub started: Timestamp,
    /// When the run was closed.
    #[serde(default)]
    pub closed: Option<Timestamp>,
    /// The number of recorded turns.
    #[serde(default)]
    pub turns: u64,
    /// Why the run is stuck, if it is.
    #[serde(default)]
    pub stuck: Option<Stuck>,
    /// The memo: notes for people.
    #[serde(default)]
    pub memo: BTreeMap<Name, Payload>,
    /// Search attributes. Lists leave this empty.
    #[serde(default)]
    pub attributes: BTreeMap<Name, AttributeValue>,
    /// The snapshot that the run published last.
    #[serde(default)]
    pub published: Option<Payload>,
    /// The result of a closed run, or the failure that explains any other end. None if another run goes on.
    #[serde(default)]
    pub result: Option<Result<Payload, Failure>>,
    /// Pending activities. Lists leave this empty.
    #[serde(default)]
    pub pending: Vec<PendingActivity>,
    /// The number of messages that an open run was sent and has not taken, its start not counted. A terminate drops them,
    /// though their senders were answered. Lists and clusters leave this at 0.
    #[serde(default)]
    pub messages_waiting: u64,
}

impl Description {
    /// Creates a description with nothing but its names; a backend fills in the rest.
    pub fn new(workflow_id: Name, run_id: Name) -> Self {
        Self {
            workflow_id,
            run_id,
            first_run_id: Name::default(),
            next_run_id: None,
            parent: None,
            workflow: Name::default(),
            queue: Name::default(),
            status: Status::Open,
            started: Timestamp::default(),
            closed: None,
            turns: 0,
            stuck: None,
            memo: BTreeMap::new(),
            attributes: BTreeMap::new(),
            published: None,
            result: None,
            pending: Vec::new(),
            messages_waiting: 0,
        }
    }

    /// Names this very run.
    pub fn reference(&self) -> RunRef {
        RunRef::exact(self.workflow_id.clone(), self.run_id.clone())
    }
}

/// The state of a pending activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActivityState {
    /// The activity is pending. Only the process that serves its queue knows more.
    Pending,
    /// The activity waits for its next attempt.
    Waiting,
    /// The activity waits for a free place in its queue.
    Ready,
    /// An attempt runs.
    Running,
    /// The code of the attempt has returned, and an external caller completes it by its token.
    External,
    /// No worker here serves its type.
    Unserved,
    /// The process died too often while the activity ran; it waits until it is released.
    Quarantined,
    /// A state that a newer backend has and this build does not know.
    #[serde(other)]
    Unknown,
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
            Self::Unknown => "in a state that this build does not know",
        })
    }
}

/// A pending activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingActivity {
    /// The number of the operation within its run.
    pub seq: Seq,
    /// The activity's id, the stable part of its idempotency key.
    pub id: Name,
    /// The activity's type.
    pub activity: Name,
    /// The purpose of the activity in one line, if the workflow gave one.
    #[serde(default)]
    pub summary: Option<String>,
    /// The task queue.
    #[serde(default)]
    pub queue: Name,
    /// The state.
    pub state: ActivityState,
    /// The attempt that runs or comes next, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// The most attempts; 0 means no limit.
    #[serde(default)]
    pub attempts: u32,
    /// The priority.
    #[serde(default)]
    pub priority: i32,
    /// When the activity was scheduled.
    #[serde(default)]
    pub scheduled: Timestamp,
    /// When the running attempt started.
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// When the next attempt starts.
    #[serde(default)]
    pub next_attempt: Option<Timestamp>,
    /// When the running attempt last reported.
    #[serde(default)]
    pub last_heartbeat: Option<Timestamp>,
    /// The details that an attempt reported last.
    #[serde(default)]
    pub details: Option<Payload>,
    /// How the last attempt failed.
    #[serde(default)]
    pub last_failure: Option<Failure>,
}

fn first() -> u32 {
    1
}

impl PendingActivity {
    /// An activity that has nothing but its names, before its first attempt; a backend fills in the rest.
    pub fn new(seq: Seq, id: Name, activity: Name) -> Self {
        Self {
            seq,
            id,
            activity,
            summary: None,
            queue: Name::default(),
            state: ActivityState::Pending,
            attempt: first(),
            attempts: 0,
            priority: 0,
            scheduled: Timestamp::default(),
            started: None,
            next_attempt: None,
            last_heartbeat: None,
            details: None,
            last_failure: None,
        }
    }
}

/// A problem with stored data, found by `verify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The run, unless it is the stored data as a whole.
    #[serde(default)]
    pub run: Option<RunRef>,
    /// The problem, as text.
    pub what: String,
}

impl Problem {
    /// A problem of this run, or of the stored data as a whole.
    pub fn new(run: Option<RunRef>, what: impl Into<String>) -> Self {
        Self { run, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some(RunRef { workflow_id, run_id, .. }) => {
                write!(f, "run {workflow_id:?} ({}): {}", run_id.as_deref().unwrap_or("?"), self.what)
            }
            None => write!(f, "stored data: {}", self.what),
        }
    }
}
