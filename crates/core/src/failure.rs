//! Failures: outcomes of user code, recorded as data.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Name, Payload};

/// A failure as data: it is recorded in the run's history and given to the callers that wait for the result.
///
/// A problem of the engine itself is never a failure: it is an error, and never reaches history.
///
/// ```
/// # use dacapo_core::Failure;
/// fn withdraw(cents: u64) -> Result<u64, Failure> {
///     match cents {
///         0..100_000 => Ok(cents),
///         // Retry policies and code know it by its type; no attempt follows.
///         _ => Err(Failure::application("the limit is 1,000 euros").typed("Declined").non_retryable()),
///     }
/// }
///
/// // An activity's failure has the one that its code returned as its cause.
/// let failure = Failure::application("activity withdraw failed").caused_by(withdraw(200_000).unwrap_err());
/// assert_eq!(failure.root_cause().type_name.as_deref(), Some("Declined"));
/// assert_eq!(failure.to_string(), "activity withdraw failed: the limit is 1,000 euros");
/// assert!(!failure.is_timeout() && !failure.is_cancelled());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The message for people to read.
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
    /// The cause. Only [`Failure::caused_by`] sets it, which limits the chain to the length that a record can hold.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "short_chain")]
    pub(crate) cause: Option<Box<Failure>>,
    /// The program that reported the failure, and the place in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
}

/// The program that reported a failure, and the place in it. Never compared on replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Origin {
    /// The program.
    #[n(0)]
    pub source: Name,
    /// The place in the program, if it is known.
    #[n(1)]
    pub stack: String,
}

/// The kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// User code returned the failure.
    #[n(0)]
    Application,
    /// A timeout ran out.
    #[n(1)]
    Timeout(#[n(0)] TimeoutKind),
    /// The work ended because of a cancellation.
    #[n(2)]
    Cancelled,
    /// The run was terminated.
    #[n(3)]
    Terminated,
    /// A server reported the failure.
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
    /// Not a failure at all: the workflow continues as a new run.
    #[n(9)]
    ContinueAsNew,
}

/// The activity that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActivityFailed {
    /// The activity's type.
    #[n(0)]
    pub activity: Name,
    /// The activity's id within the run.
    #[n(1)]
    pub id: Name,
    /// The reason why no further attempt was made.
    #[n(2)]
    pub retry: RetryState,
}

/// The child that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChildFailed {
    /// The child's type.
    #[n(0)]
    pub workflow: Name,
    /// The child's workflow id.
    #[n(1)]
    pub workflow_id: Name,
    /// The child's run id, once it had one.
    #[n(2)]
    pub run_id: Name,
    /// The reason why the child was not run again.
    #[n(3)]
    pub retry: RetryState,
}

/// The operation of another service that failed.
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

/// The timeout that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeoutKind {
    /// The time from the start of an attempt to its end.
    #[n(0)]
    StartToClose,
    /// The time from the schedule to the start of an attempt.
    #[n(1)]
    ScheduleToStart,
    /// The time from the schedule to the end of the last attempt.
    #[n(2)]
    ScheduleToClose,
    /// The time between two heartbeats.
    #[n(3)]
    Heartbeat,
    /// The deadline that workflow code itself set.
    #[n(4)]
    Deadline,
}

/// The reason why there was no further attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetryState {
    /// The reason is not known.
    #[n(0)]
    #[default]
    Unspecified,
    /// Attempts are still being made.
    #[n(1)]
    InProgress,
    /// The failure is marked as not retryable.
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
    /// The work was cancelled.
    #[n(7)]
    CancelRequested,
}

/// The longest chain of causes that is kept. Deeper causes are left out.
pub(crate) const MAX_CAUSES: usize = 64;

impl Failure {
    /// Creates a failure of this kind.
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

    /// Creates a failure that user code decided on.
    pub fn application(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Application, message)
    }

    /// Sets the failure's type.
    #[must_use]
    pub fn typed(mut self, type_name: impl Into<Name>) -> Self {
        self.type_name = Some(type_name.into());
        self
    }

    /// Marks the failure as not retryable.
    #[must_use]
    pub fn non_retryable(mut self) -> Self {
        self.non_retryable = true;
        self
    }

    /// Sets the cause. Of a very long chain the deepest causes are left out.
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

    /// Returns the cause.
    pub fn cause(&self) -> Option<&Failure> {
        self.cause.as_deref()
    }

    /// Returns whether this is a cancellation, or wraps one.
    pub fn is_cancelled(&self) -> bool {
        self.chain().any(|failure| failure.kind == FailureKind::Cancelled)
    }

    /// Returns whether this is a timeout, or wraps one.
    pub fn is_timeout(&self) -> bool {
        self.chain().any(|failure| matches!(failure.kind, FailureKind::Timeout(_)))
    }

    /// Returns the last of its causes, or itself: what failed first.
    pub fn root_cause(&self) -> &Failure {
        self.chain().last().unwrap_or(self)
    }

    /// Returns this failure and its causes, outermost first.
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

/// The error of a wait whose scope was cancelled. It converts into [`Failure`], so `?` passes it on, and a cancelled
/// run whose code passes it on ends as cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The reason given with the request to cancel.
    pub reason: String,
}

impl Cancelled {
    /// Creates the result of a wait whose run is no longer in memory. Workflow code does not see it in normal play: it
    /// can only reach futures that were moved out of their run.
    pub(crate) fn evicted() -> Self {
        Self { reason: EVICTED.to_owned() }
    }

    /// Returns whether the run was evicted from memory, as opposed to its work being cancelled.
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
