//! Commands that start an operation, which is resolved later under the command's seq.

use std::collections::BTreeMap;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::options::{CancelType, IdReuse, ParentClose, Priority, Retry, Timeouts};
use crate::time::{text_duration, text_duration_option};
use crate::{AttributeValue, Headers, Name, OperationId, Payload, Seq, Target, Timestamp};

/// The command to schedule an activity on a task queue.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleActivity {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The operation's id, the stable part of the idempotency key.
    #[n(1)]
    pub id: OperationId,
    /// The activity's type.
    #[n(2)]
    pub activity: Name,
    /// The arguments.
    #[n(3)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// Metadata sent with the arguments; never compared.
    #[n(4)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The task queue; the run's own by default.
    #[n(5)]
    pub queue: Option<Name>,
    /// The timeouts.
    #[n(6)]
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The retry policy.
    #[n(7)]
    pub retry: Option<Retry>,
    /// The effect of a cancellation.
    #[n(8)]
    #[serde(default)]
    pub cancel: CancelType,
    /// The priority of the task.
    #[n(9)]
    #[serde(default)]
    pub priority: Priority,
    /// A one-line description for people.
    #[n(10)]
    pub summary: Option<String>,
}

/// The command to run an activity in the process that plays the workflow.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleLocalActivity {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The operation's id.
    #[n(1)]
    pub id: OperationId,
    /// The activity's type.
    #[n(2)]
    pub activity: Name,
    /// The arguments.
    #[n(3)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// Metadata sent with the arguments; never compared.
    #[n(4)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The timeouts; the heartbeat has no meaning here.
    #[n(5)]
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The retry policy.
    #[n(6)]
    pub retry: Option<Retry>,
    /// The threshold above which a pause becomes a timer of the run, so that the pause holds nothing up.
    #[n(7)]
    #[serde(default, with = "text_duration_option")]
    pub local_retry_threshold: Option<Duration>,
    /// The effect of a cancellation.
    #[n(8)]
    #[serde(default)]
    pub cancel: CancelType,
    /// The number of this attempt, from 1.
    #[n(9)]
    pub attempt: u32,
    /// The time at which the first attempt was scheduled, for attempts that follow a pause.
    #[n(10)]
    pub first_scheduled: Option<Timestamp>,
    /// A one-line description for people.
    #[n(11)]
    pub summary: Option<String>,
}

/// The command to run a closure of the workflow itself, once, and record its result. The worker takes the body by its
/// seq.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSideEffect {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The operation's id.
    #[n(1)]
    pub id: OperationId,
    /// The name: together with the position, it is the operation's identity.
    #[n(2)]
    pub name: Name,
    /// The retry policy.
    #[n(3)]
    pub retry: Option<Retry>,
    /// The timeouts; the heartbeat has no meaning here.
    #[n(4)]
    #[serde(default)]
    pub timeouts: Timeouts,
    /// A one-line description for people.
    #[n(5)]
    pub summary: Option<String>,
}

/// The command to start a timer.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartTimer {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The time until it fires.
    #[n(1)]
    #[serde(with = "text_duration")]
    pub duration: Duration,
    /// A one-line description for people.
    #[n(2)]
    pub summary: Option<String>,
}

/// The command to start a child workflow. Its start and its result are two resolutions of one seq.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartChild {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The namespace; the run's own by default.
    #[n(1)]
    pub namespace: Option<Name>,
    /// The child's workflow id; the operation's id by default.
    #[n(2)]
    pub workflow_id: Name,
    /// The child's type.
    #[n(3)]
    pub workflow: Name,
    /// The task queue; the run's own by default.
    #[n(4)]
    pub queue: Option<Name>,
    /// The arguments.
    #[n(5)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// The timeout from the start of the first run to the end of the last.
    #[n(6)]
    #[serde(default, with = "text_duration_option")]
    pub execution_timeout: Option<Duration>,
    /// The timeout from the start of one run to its end.
    #[n(7)]
    #[serde(default, with = "text_duration_option")]
    pub run_timeout: Option<Duration>,
    /// The timeout of one turn.
    #[n(8)]
    #[serde(default, with = "text_duration_option")]
    pub task_timeout: Option<Duration>,
    /// The rule for the child when this run closes.
    #[n(9)]
    #[serde(default)]
    pub parent_close: ParentClose,
    /// Whether its id may have been used before.
    #[n(10)]
    #[serde(default)]
    pub id_reuse: IdReuse,
    /// The retry policy after a failure; no retries by default.
    #[n(11)]
    pub retry: Option<Retry>,
    /// The schedule, as a cron line.
    #[n(12)]
    pub cron: Option<Name>,
    /// Metadata sent with the arguments; never compared.
    #[n(13)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The child's memo.
    #[n(14)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memo: BTreeMap<Name, Payload>,
    /// The child's search attributes.
    #[n(15)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub search_attributes: BTreeMap<Name, AttributeValue>,
    /// The effect of a cancellation.
    #[n(16)]
    #[serde(default)]
    pub cancel: CancelType,
    /// The priority of the child's tasks.
    #[n(17)]
    #[serde(default)]
    pub priority: Priority,
    /// A one-line description for people.
    #[n(18)]
    pub summary: Option<String>,
}

/// The command to signal another workflow.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalExternal {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The workflow to signal.
    #[n(1)]
    pub target: Target,
    /// The signal's name.
    #[n(2)]
    pub signal: Name,
    /// The arguments.
    #[n(3)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// Metadata sent with the arguments; never compared.
    #[n(4)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
}

/// The command to ask another workflow to cancel.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelExternal {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The workflow to cancel.
    #[n(1)]
    pub target: Target,
    /// The reason.
    #[n(2)]
    pub reason: String,
}

/// The command to call an operation of another service. Its start and its result are two resolutions of one seq.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallNexus {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The endpoint.
    #[n(1)]
    pub endpoint: Name,
    /// The service.
    #[n(2)]
    pub service: Name,
    /// The operation.
    #[n(3)]
    pub operation: Name,
    /// The argument.
    #[n(4)]
    pub input: Payload,
    /// The time from the schedule to the end.
    #[n(5)]
    #[serde(default, with = "text_duration_option")]
    pub schedule_to_close: Option<Duration>,
    /// The time from the schedule to the start.
    #[n(6)]
    #[serde(default, with = "text_duration_option")]
    pub schedule_to_start: Option<Duration>,
    /// The time from the start to the end.
    #[n(7)]
    #[serde(default, with = "text_duration_option")]
    pub start_to_close: Option<Duration>,
    /// Metadata sent with the argument; never compared.
    #[n(8)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Name, Name>,
    /// The effect of a cancellation.
    #[n(9)]
    #[serde(default)]
    pub cancel: CancelType,
    /// A one-line description for people.
    #[n(10)]
    pub summary: Option<String>,
}

/// The command to open a promise that a caller outside the run resolves.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreatePromise {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The id by which the promise is resolved.
    #[n(1)]
    pub id: OperationId,
    /// The name by which people know it.
    #[n(2)]
    pub name: Name,
}
