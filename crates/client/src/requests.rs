//! What callers send, and what they get back.

use std::collections::BTreeMap;
use std::time::Duration;

use dacapo_core::{AttributeValue, Failure, Headers, IdReuse, Name, Payload, Pins, Retry, text_duration_option};
use serde::{Deserialize, Serialize};

use crate::{RunRef, Status};

/// The rule for a start whose workflow id is in use by an open run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdConflict {
    /// The start is refused.
    #[default]
    Fail,
    /// The start returns the open run.
    UseExisting,
    /// The start terminates the open run and starts a new one.
    TerminateExisting,
}

/// A request to start a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartRun {
    /// The workflow's type.
    pub workflow: Name,
    /// The caller's name for the run.
    pub workflow_id: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// The task queue; without one, the backend's default.
    pub queue: Option<Name>,
    /// Whether the workflow id may have been used by a closed run.
    pub id_reuse: IdReuse,
    /// The rule for a workflow id that is in use by an open run.
    pub id_conflict: IdConflict,
    /// The caller's key for this request: a second start with the same key is the same start.
    pub request_id: Option<Name>,
    /// The longest time from the start of the first run to the end of the last run of its chain.
    #[serde(with = "text_duration_option")]
    pub execution_timeout: Option<Duration>,
    /// The longest time from the start of one run to its end.
    #[serde(with = "text_duration_option")]
    pub run_timeout: Option<Duration>,
    /// How long the run waits before its first turn.
    #[serde(with = "text_duration_option")]
    pub delay: Option<Duration>,
    /// When the workflow is run again after a failure; without one, never.
    pub retry: Option<Retry>,
    /// The memo: notes for people.
    pub memo: BTreeMap<Name, Payload>,
    /// Search attributes.
    pub attributes: BTreeMap<Name, AttributeValue>,
    /// Headers that travel beside the arguments.
    pub headers: Headers,
    /// Facts that the run keeps for life, such as its scheduler policy; without them, those of the registered workflow.
    pub pins: Option<Pins>,
}

/// A run that a call started or found started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Started {
    /// The run.
    pub run: RunRef,
    /// Whether this call started it.
    pub is_new: bool,
}

impl Started {
    /// The answer to a start that gave this run.
    pub fn new(run: RunRef, is_new: bool) -> Self {
        Self { run, is_new }
    }
}

/// A request to send a signal to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendSignal {
    /// The signal's name.
    pub name: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// Headers that travel beside the arguments.
    pub headers: Headers,
    /// The caller's key for this request: a second signal with the same key is the same signal.
    pub request_id: Option<Name>,
}

/// A request to query a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueryRun {
    /// The query's name.
    pub name: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// Headers that travel beside the arguments.
    pub headers: Headers,
}

/// A request to send an update to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendUpdate {
    /// The update's id: a second update with the same id is the same update.
    pub id: Name,
    /// The update's name.
    pub name: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// Headers that travel beside the arguments.
    pub headers: Headers,
    /// The event for which the caller waits.
    pub wait: UpdateWait,
}

/// A request for the state of an update that was sent before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollUpdate {
    /// The update's id.
    pub id: Name,
    /// The event for which the caller waits.
    pub wait: UpdateWait,
}

/// The event for which the sender of an update waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateWait {
    /// The workflow accepts or rejects the update.
    Accepted,
    /// The workflow has completed the update.
    #[default]
    Completed,
}

/// The state of an update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateState {
    /// The workflow accepted it and has not completed it yet.
    Accepted,
    /// The workflow completed it with this result.
    Completed(Result<Payload, Failure>),
}

/// The completion of a pending activity by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompleteActivity {
    /// The activity's id, as [`Description`](crate::Description) shows it.
    pub activity_id: Name,
    /// Its result.
    pub result: Result<Payload, Failure>,
}

/// The resolution of a promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvePromise {
    /// The promise's name or id.
    pub promise: Name,
    /// The value, or the failure with which the promise is rejected.
    pub result: Result<Payload, Failure>,
}

/// The status and result with which a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunResult {
    /// The final status.
    pub status: Status,
    /// The result, or the failure that explains any other end.
    pub result: Result<Payload, Failure>,
}

impl RunResult {
    /// The end of a run with this status.
    pub fn new(status: Status, result: Result<Payload, Failure>) -> Self {
        Self { status, result }
    }
}
