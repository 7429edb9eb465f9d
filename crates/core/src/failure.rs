//! Failures: outcomes of user code, recorded as data.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Name, Payload};

/// What went wrong, as data: it is recorded in the run's history and given to whoever waits for the result.
///
/// Trouble of the engine itself is never a failure: it is an error, and never reaches history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What sort of failure this is.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
    /// The type of an application failure, for retry policies and for code that tells failures apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_name: Option<Name>,
    /// Whether trying again is pointless.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_retryable: bool,
    /// Values for code that handles the failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Payload>,
    /// What caused it. Set by [`Failure::caused_by`] alone, which keeps the chain as short as a record can hold.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "short_chain")]
    pub(crate) cause: Option<Box<Failure>>,
    /// Who reported it, and from where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
}

/// Who reported a failure, and from where. Never compared on replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Origin {
    /// Which program.
    #[n(0)]
    pub source: Name,
    /// Where in it, as far as it tells.
    #[n(1)]
    pub stack: String,
}

/// The sorts of failure.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// User code said so.
    #[n(0)]
    Application,
    /// One of the timeouts ran out.
    #[n(1)]
    Timeout(#[n(0)] TimeoutKind),
    /// A cancellation was asked for, and this is how it ended.
    #[n(2)]
    Cancelled,
    /// Somebody terminated the run.
    #[n(3)]
    Terminated,
    /// A server said so.
    #[n(4)]
    Server,
    /// An activity failed; the cause says how.
    #[n(5)]
    Activity(#[n(0)] Box<ActivityFailed>),
    /// A child workflow failed; the cause says how.
    #[n(6)]
    Child(#[n(0)] Box<ChildFailed>),
    /// An operation of another service failed; the cause says how.
    #[n(7)]
    Nexus(#[n(0)] Box<NexusFailed>),
    /// The run was reset while this was pending.
    #[n(8)]
    Reset,
    /// Not a failure at all: the workflow goes on as a new run.
    #[n(9)]
    ContinueAsNew,
}

/// Which activity failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActivityFailed {
    /// The activity's type.
    #[n(0)]
    pub activity: Name,
    /// Its id within the run.
    #[n(1)]
    pub id: Name,
    /// Why no further attempt was made.
    #[n(2)]
    pub retry: RetryState,
}

/// Which child failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChildFailed {
    /// The child's type.
    #[n(0)]
    pub workflow: Name,
    /// Its workflow id.
    #[n(1)]
    pub workflow_id: Name,
    /// Its run id, once it had one.
    #[n(2)]
    pub run_id: Name,
    /// Why it was not run again.
    #[n(3)]
    pub retry: RetryState,
}

/// Which operation of another service failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NexusFailed {
    /// The endpoint called.
    #[n(0)]
    pub endpoint: Name,
    /// The service called.
    #[n(1)]
    pub service: Name,
    /// The operation called.
    #[n(2)]
    pub operation: Name,
    /// The token of the operation, once it had started.
    #[n(3)]
    pub token: Name,
}

/// Which timeout ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeoutKind {
    /// From the start of an attempt to its end.
    #[n(0)]
    StartToClose,
    /// From the schedule to the start of an attempt.
    #[n(1)]
    ScheduleToStart,
    /// From the schedule to the end of the last attempt.
    #[n(2)]
    ScheduleToClose,
    /// Between two heartbeats.
    #[n(3)]
    Heartbeat,
    /// The time that workflow code itself set.
    #[n(4)]
    Deadline,
}

/// Why there was no further attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetryState {
    /// Nothing is known of it.
    #[n(0)]
    #[default]
    Unspecified,
    /// It is still being tried.
    #[n(1)]
    InProgress,
    /// The failure said that trying again is pointless.
    #[n(2)]
    NonRetryableFailure,
    /// A timeout ended it.
    #[n(3)]
    Timeout,
    /// All attempts were used.
    #[n(4)]
    MaximumAttemptsReached,
    /// No retry policy was set.
    #[n(5)]
    RetryPolicyNotSet,
    /// The server failed.
    #[n(6)]
    InternalServerError,
    /// It was cancelled.
    #[n(7)]
    CancelRequested,
}

/// The longest chain of causes that is kept. Deeper causes are left out.
pub(crate) const MAX_CAUSES: usize = 64;

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            type_name: None,
            non_retryable: false,
            details: Vec::new(),
            cause: None,
            origin: None,
        }
    }

    /// A failure that user code decided on.
    pub fn application(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Application, message)
    }

    /// Names the failure's type.
    #[must_use]
    pub fn typed(mut self, type_name: impl Into<Name>) -> Self {
        self.type_name = Some(type_name.into());
        self
    }

    /// Says that trying again is pointless.
    #[must_use]
    pub fn not_retryable(mut self) -> Self {
        self.non_retryable = true;
        self
    }

    /// Says what caused it. Of a very long chain the deepest causes are left out.
    #[must_use]
    pub fn caused_by(mut self, mut cause: Failure) -> Self {
        let mut link = &mut cause;
        for _ in 2..MAX_CAUSES {
            match link.cause.as_deref_mut() {
                Some(_) => link = link.cause.as_deref_mut().expect("the link was just seen"),
                None => break,
            }
        }
        link.cause = None;
        self.cause = Some(Box::new(cause));
        self
    }

    /// What caused it.
    pub fn cause(&self) -> Option<&Failure> {
        self.cause.as_deref()
    }

    /// Whether this is a cancellation, or wraps one.
    pub fn is_cancelled(&self) -> bool {
        self.chain().any(|failure| failure.kind == FailureKind::Cancelled)
    }

    /// Whether this is a timeout, or wraps one.
    pub fn is_timeout(&self) -> bool {
        self.chain().any(|failure| matches!(failure.kind, FailureKind::Timeout(_)))
    }

    /// The last of its causes, or itself: what went wrong in the beginning.
    pub fn root_cause(&self) -> &Failure {
        self.chain().last().unwrap_or(self)
    }

    /// This failure and its causes, outermost first.
    pub fn chain(&self) -> impl Iterator<Item = &Failure> {
        std::iter::successors(Some(self), |failure| failure.cause.as_deref())
    }
}

fn short_chain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Failure>>, D::Error> {
    let cause = Option::<Box<Failure>>::deserialize(deserializer)?;
    match cause.as_ref().map_or(0, |cause| cause.chain().count()) < MAX_CAUSES {
        true => Ok(cause),
        false => Err(serde::de::Error::custom("a failure has too many causes")),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.chain().skip(1).try_for_each(|cause| write!(f, ": {}", cause.message))
    }
}

impl std::error::Error for Failure {}

/// A wait ended because what it belongs to was cancelled. It converts into [`Failure`], so `?` passes it on, and a
/// cancelled run whose code passes it on ends as cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Why, as whoever asked for it said.
    pub reason: String,
}

impl Cancelled {
    /// What a wait answers when its run is no longer in memory. No workflow code is meant to see it: it can only reach
    /// futures that were carried out of their run.
    pub(crate) fn evicted() -> Self {
        Self { reason: EVICTED.to_owned() }
    }

    /// Whether the run itself is gone from memory, and not its work cancelled.
    pub fn is_eviction(&self) -> bool {
        self.reason == EVICTED
    }
}

const EVICTED: &str = "the run was evicted from memory";

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => f.write_str("cancelled"),
            reason => write!(f, "cancelled: {reason}"),
        }
    }
}

impl std::error::Error for Cancelled {}

impl From<Cancelled> for Failure {
    fn from(cancelled: Cancelled) -> Self {
        Self::new(FailureKind::Cancelled, cancelled.reason)
    }
}
