//! Commands that start nothing: cancels, markers, answers, and how a run ends.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::options::Retry;
use crate::time::text_duration_option;
use crate::{Failure, Headers, Name, Operation, Payload, Seq};

/// Cancel an operation that was started earlier.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelOperation {
    /// Which.
    #[n(0)]
    pub seq: Seq,
    /// What sort of operation that is.
    #[n(1)]
    pub operation: Operation,
    /// Why.
    #[n(2)]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The mark of a patched path.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchMarker {
    /// The patch.
    #[n(0)]
    pub id: Name,
    /// Whether the unpatched path is gone from the code. Such a mark may vanish from the code later.
    #[n(1)]
    #[serde(default)]
    pub deprecated: bool,
}

/// Set or clear a durable key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetState {
    /// The key.
    #[n(0)]
    pub key: Name,
    /// Its value; none clears it.
    #[n(1)]
    pub value: Option<Payload>,
}

/// How something ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With this value.
    #[n(0)]
    Completed(#[n(0)] Payload),
    /// With this failure; a cancellation is one too.
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

/// The handler of an accepted update is done.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteUpdate {
    /// The update's id.
    #[n(0)]
    pub update: Name,
    /// What its sender is told.
    #[n(1)]
    pub outcome: Outcome,
}

/// The workflow goes on as a new run.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinueAsNew {
    /// The type of the new run; this run's own where it is empty.
    #[n(0)]
    pub workflow: Name,
    /// The task queue; this run's own by default.
    #[n(1)]
    pub queue: Option<Name>,
    /// The arguments.
    #[n(2)]
    pub input: Vec<Payload>,
    /// From the start of the new run to its end.
    #[n(3)]
    #[serde(with = "text_duration_option")]
    pub run_timeout: Option<Duration>,
    /// For one turn.
    #[n(4)]
    #[serde(with = "text_duration_option")]
    pub task_timeout: Option<Duration>,
    /// The memo of the new run: this run's memo as it now stands, unless set.
    #[n(5)]
    pub memo: Option<BTreeMap<Name, Payload>>,
    /// What travels beside the arguments; never compared.
    #[n(6)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: Headers,
    /// The search attributes of the new run: this run's as they now stand, unless set.
    #[n(7)]
    pub search_attributes: Option<BTreeMap<Name, Payload>>,
    /// When the new run is run again after a failure.
    #[n(8)]
    pub retry: Option<Retry>,
    /// How long the new run waits before its first turn.
    #[n(9)]
    #[serde(with = "text_duration_option")]
    pub start_delay: Option<Duration>,
}
