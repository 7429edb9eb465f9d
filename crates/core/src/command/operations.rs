//! Commands that start something which is resolved later, under the command's seq.

use std::collections::BTreeMap;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::options::{CancelType, IdReuse, ParentClose, Priority, Retry, Timeouts};
use crate::time::{text_duration, text_duration_option};
use crate::{Headers, Name, OperationId, Payload, Seq, Target, Timestamp};

/// Schedule an activity on a task queue.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleActivity {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// Its id, the stable part of the idempotency key.
    #[n(1)]
    pub id: OperationId,
    /// The activity's type.
    #[n(2)]
    pub activity: Name,
    /// The arguments.
    #[n(3)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// What travels beside the arguments; never compared.
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
    /// When it is tried again.
    #[n(7)]
    pub retry: Option<Retry>,
    /// What a cancellation does.
    #[n(8)]
    #[serde(default)]
    pub cancel: CancelType,
    /// Which task goes first.
    #[n(9)]
    #[serde(default)]
    pub priority: Priority,
    /// One line for people.
    #[n(10)]
    pub summary: Option<String>,
}

/// Run an activity in the process that plays the workflow.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleLocalActivity {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// Its id.
    #[n(1)]
    pub id: OperationId,
    /// The activity's type.
    #[n(2)]
    pub activity: Name,
    /// The arguments.
    #[n(3)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// What travels beside the arguments; never compared.
    #[n(4)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The timeouts; the heartbeat has no meaning here.
    #[n(5)]
    #[serde(default)]
    pub timeouts: Timeouts,
    /// When it is tried again.
    #[n(6)]
    pub retry: Option<Retry>,
    /// Pauses longer than this become a timer of the run, so that nothing is held up.
    #[n(7)]
    #[serde(default, with = "text_duration_option")]
    pub local_retry_threshold: Option<Duration>,
    /// What a cancellation does.
    #[n(8)]
    #[serde(default)]
    pub cancel: CancelType,
    /// Which attempt this is, from 1.
    #[n(9)]
    pub attempt: u32,
    /// When the first attempt was scheduled, for attempts that follow a pause.
    #[n(10)]
    pub first_scheduled: Option<Timestamp>,
    /// One line for people.
    #[n(11)]
    pub summary: Option<String>,
}

/// Run a closure of the workflow itself, once, and remember what it returned. The worker takes the body by its seq.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRun {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// Its id.
    #[n(1)]
    pub id: OperationId,
    /// Its name: with the position, its identity.
    #[n(2)]
    pub name: Name,
    /// When it is tried again.
    #[n(3)]
    pub retry: Option<Retry>,
    /// The timeouts; the heartbeat has no meaning here.
    #[n(4)]
    #[serde(default)]
    pub timeouts: Timeouts,
    /// One line for people.
    #[n(5)]
    pub summary: Option<String>,
}

/// Start a timer.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartTimer {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// How long it runs.
    #[n(1)]
    #[serde(with = "text_duration")]
    pub duration: Duration,
    /// One line for people.
    #[n(2)]
    pub summary: Option<String>,
}

/// Start a child workflow. Its start and its result are two resolutions of one seq.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartChild {
    /// Its seq.
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
    /// From the start of the first run to the end of the last.
    #[n(6)]
    #[serde(default, with = "text_duration_option")]
    pub execution_timeout: Option<Duration>,
    /// From the start of one run to its end.
    #[n(7)]
    #[serde(default, with = "text_duration_option")]
    pub run_timeout: Option<Duration>,
    /// For one turn.
    #[n(8)]
    #[serde(default, with = "text_duration_option")]
    pub task_timeout: Option<Duration>,
    /// What becomes of it when this run closes.
    #[n(9)]
    #[serde(default)]
    pub parent_close: ParentClose,
    /// Whether its id may have been used before.
    #[n(10)]
    #[serde(default)]
    pub id_reuse: IdReuse,
    /// When it is run again after a failure; never by default.
    #[n(11)]
    pub retry: Option<Retry>,
    /// When it is started, as a cron line.
    #[n(12)]
    pub cron: Option<Name>,
    /// What travels beside the arguments; never compared.
    #[n(13)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// Its memo.
    #[n(14)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memo: BTreeMap<Name, Payload>,
    /// Its search attributes.
    #[n(15)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub search_attributes: BTreeMap<Name, Payload>,
    /// What a cancellation does.
    #[n(16)]
    #[serde(default)]
    pub cancel: CancelType,
    /// Which task goes first.
    #[n(17)]
    #[serde(default)]
    pub priority: Priority,
    /// One line for people.
    #[n(18)]
    pub summary: Option<String>,
}

/// Signal another workflow.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalExternal {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// Whom.
    #[n(1)]
    pub target: Target,
    /// The signal's name.
    #[n(2)]
    pub signal: Name,
    /// The arguments.
    #[n(3)]
    #[serde(default)]
    pub input: Vec<Payload>,
    /// What travels beside the arguments; never compared.
    #[n(4)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
}

/// Ask another workflow to cancel.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelExternal {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// Whom.
    #[n(1)]
    pub target: Target,
    /// Why.
    #[n(2)]
    pub reason: String,
}

/// Call an operation of another service. Its start and its result are two resolutions of one seq.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallNexus {
    /// Its seq.
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
    /// From the schedule to the end.
    #[n(5)]
    #[serde(default, with = "text_duration_option")]
    pub schedule_to_close: Option<Duration>,
    /// From the schedule to the start.
    #[n(6)]
    #[serde(default, with = "text_duration_option")]
    pub schedule_to_start: Option<Duration>,
    /// From the start to the end.
    #[n(7)]
    #[serde(default, with = "text_duration_option")]
    pub start_to_close: Option<Duration>,
    /// What travels beside the argument; never compared.
    #[n(8)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Name, Name>,
    /// What a cancellation does.
    #[n(9)]
    #[serde(default)]
    pub cancel: CancelType,
    /// One line for people.
    #[n(10)]
    pub summary: Option<String>,
}

/// Open a promise that somebody outside resolves.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreatePromise {
    /// Its seq.
    #[n(0)]
    pub seq: Seq,
    /// Its id, by which it is resolved.
    #[n(1)]
    pub id: OperationId,
    /// Its name, by which people know it.
    #[n(2)]
    pub name: Name,
}
