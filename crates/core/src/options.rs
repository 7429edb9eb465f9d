//! The options of operations. `None` means "the default"; a sealed command holds none of those: defaults are resolved
//! into it, so that a later change of a default cannot change what was decided.

use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::Name;
use crate::time::{text_duration, text_duration_option};

/// A retry policy: how many attempts there are, and how long the pauses between them.
///
/// ```
/// # use std::time::Duration;
/// # use dacapo_core::Retry;
/// # let secs = Duration::from_secs;
/// // Five attempts, after pauses of 2, 6, 18 and 20 seconds. A card that was declined is not tried again.
/// let retry = Retry::exponential().attempts(5).first_pause(secs(2)).factor(3.0).max_pause(secs(20)).non_retryable("Declined");
/// ```
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The pause before the first retry.
    #[n(0)]
    #[serde(with = "text_duration")]
    pub first_pause: Duration,
    /// The factor by which each pause is longer than the one before.
    #[n(1)]
    pub factor: f64,
    /// The longest pause.
    #[n(2)]
    #[serde(with = "text_duration")]
    pub max_pause: Duration,
    /// The number of attempts including the first; 0 means no limit.
    #[n(3)]
    pub attempts: u32,
    /// Types of failures that are not retried.
    #[n(4)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<Name>,
}

impl Retry {
    /// Returns the default policy: pauses that double from one second to 100, and three retries after the first
    /// attempt.
    pub const fn exponential() -> Self {
        Self {
            first_pause: Duration::from_secs(1),
            factor: 2.0,
            max_pause: Duration::from_secs(100),
            attempts: 4,
            non_retryable: Vec::new(),
        }
    }

    /// Returns a policy of one attempt and no retry.
    pub const fn none() -> Self {
        Self::exponential().attempts(1)
    }

    /// Returns a policy that retries for ever, with pauses that double from one second to 100.
    pub const fn unlimited() -> Self {
        Self::exponential().attempts(0)
    }

    /// Sets the number of attempts including the first; 0 means no limit.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the pause before the first retry.
    #[must_use]
    pub const fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// Sets the factor by which each pause is longer than the one before: 1 or more.
    #[must_use]
    pub const fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets the longest pause.
    #[must_use]
    pub const fn max_pause(mut self, pause: Duration) -> Self {
        self.max_pause = pause;
        self
    }

    /// Adds a type of failure that is not retried.
    #[must_use]
    pub fn non_retryable(mut self, type_name: impl Into<Name>) -> Self {
        self.non_retryable.push(type_name.into());
        self
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::exponential()
    }
}

/// The priority of a task: which of two waiting tasks runs first, and how tenants share a queue.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// The priority key: tasks with a lower key run first; 0 is the default.
    #[n(0)]
    #[serde(default)]
    pub key: i32,
    /// The fairness key: tasks of one key share the part of the queue that the key gets. Backends without fair queues, such as
    /// the embedded engine, keep it and ignore it.
    #[n(1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_key: Option<Name>,
    /// The size of that share.
    #[n(2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_weight: Option<f32>,
}

/// The four timeouts of an activity. Absent means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// The time from the schedule to the end of the last attempt.
    #[n(0)]
    #[serde(with = "text_duration_option", skip_serializing_if = "Option::is_none")]
    pub schedule_to_close: Option<Duration>,
    /// The time from the schedule to the start of an attempt.
    #[n(1)]
    #[serde(with = "text_duration_option", skip_serializing_if = "Option::is_none")]
    pub schedule_to_start: Option<Duration>,
    /// The time from the start of an attempt to its end.
    #[n(2)]
    #[serde(with = "text_duration_option", skip_serializing_if = "Option::is_none")]
    pub start_to_close: Option<Duration>,
    /// The time between two heartbeats of one attempt.
    #[n(3)]
    #[serde(with = "text_duration_option", skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Duration>,
}

/// The rule for an operation, and for the wait for it, when the wait is cancelled or its future dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CancelType {
    /// Ask it to stop; the wait fails at once.
    #[n(0)]
    #[default]
    TryCancel,
    /// Ask it to stop; the wait goes on until it has ended.
    #[n(1)]
    WaitCompleted,
    /// Leave it running; the wait fails at once.
    #[n(2)]
    Abandon,
    /// Ask it to stop; the wait goes on until the request has reached it. For children and other services.
    #[n(3)]
    WaitRequested,
}

impl CancelType {
    pub(crate) const fn asks(self) -> bool {
        !matches!(self, Self::Abandon)
    }

    pub(crate) const fn waits(self) -> bool {
        matches!(self, Self::WaitCompleted | Self::WaitRequested)
    }
}

/// The rule for a child when its parent closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ParentClose {
    /// The child is terminated.
    #[n(0)]
    #[default]
    Terminate,
    /// The child goes on.
    #[n(1)]
    Abandon,
    /// The child is asked to cancel.
    #[n(2)]
    RequestCancel,
}

/// The rule for a start whose workflow id belongs to an earlier run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IdReuse {
    /// The id may be used again once the earlier run is closed.
    #[n(0)]
    #[default]
    AllowDuplicate,
    /// The id may be used again after the earlier run failed, was cancelled, terminated or timed out.
    #[n(1)]
    AllowDuplicateFailedOnly,
    /// The id may not be used again.
    #[n(2)]
    RejectDuplicate,
    /// The id may be used again at once: an open earlier run is terminated.
    #[n(3)]
    TerminateIfRunning,
}
