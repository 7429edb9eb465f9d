//! Commands that start nothing: cancels, markers, answers, and the ends of runs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::options::Retry;
use crate::time::text_duration_option;
use crate::{AttributeValue, Failure, Headers, Name, Operation, Payload, Seq};

/// The command to cancel an operation that was started earlier.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelOperation {
    /// The operation's sequence number.
    #[n(0)]
    pub seq: Seq,
    /// The operation's kind.
    #[n(1)]
    pub operation: Operation,
    /// The reason.
    #[n(2)]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The marker of a patched path.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchMarker {
    /// The patch's id.
    #[n(0)]
    pub id: Name,
    /// Whether the unpatched path is gone from the code. Such a marker may be removed from the code later.
    #[n(1)]
    #[serde(default)]
    pub deprecated: bool,
}

/// The command to set or clear a durable key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetState {
    /// The key.
    #[n(0)]
    pub key: Name,
    /// The value; `None` clears the key.
    #[n(1)]
    pub value: Option<Payload>,
}

/// The outcome of an operation or an update.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The operation or update completed, with this value.
    #[n(0)]
    Completed(#[n(0)] Payload),
    /// The operation or update failed; a cancellation is a failure too.
    #[n(1)]
    Failed(#[n(0)] Box<Failure>),
}

impl From<Result<Payload, Failure>> for Outcome {
    fn from(result: Result<Payload, Failure>) -> Self {
        result.map_or_else(|failure| Self::Failed(Box::new(failure)), Self::Completed)
    }
}

impl From<Outcome> for Result<Payload, Failure> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed(payload) => Ok(payload),
            Outcome::Failed(failure) => Err(*failure),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(payload) => write!(f, "ok {payload}"),
            Self::Failed(failure) => write!(f, "failed {failure}"),
        }
    }
}

/// The command that answers an accepted update.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteUpdate {
    /// The update's id.
    #[n(0)]
    pub update: Name,
    /// The answer to its sender.
    #[n(1)]
    pub outcome: Outcome,
}

/// The command to continue the workflow as a new run.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinueAsNew {
    /// The type of the new run; this run's own if it is empty.
    #[n(0)]
    pub workflow: Name,
    /// The task queue; this run's own by default.
    #[n(1)]
    pub queue: Option<Name>,
    /// The arguments.
    #[n(2)]
    pub input: Vec<Payload>,
    /// The timeout from the start of the new run to its end.
    #[n(3)]
    #[serde(with = "text_duration_option")]
    pub run_timeout: Option<Duration>,
    /// The timeout of one turn.
    #[n(4)]
    #[serde(with = "text_duration_option")]
    pub task_timeout: Option<Duration>,
    /// The memo of the new run: this run's current memo, unless set.
    #[n(5)]
    pub memo: Option<BTreeMap<Name, Payload>>,
    /// Metadata sent with the arguments; never compared.
    #[n(6)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The search attributes of the new run: this run's current ones, unless set.
    #[n(7)]
    pub search_attributes: Option<BTreeMap<Name, AttributeValue>>,
    /// The retry policy of the new run after a failure.
    #[n(8)]
    pub retry: Option<Retry>,
    /// The time that the new run waits before its first turn.
    #[n(9)]
    #[serde(with = "text_duration_option")]
    pub start_delay: Option<Duration>,
}
