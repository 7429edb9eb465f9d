//! Why open runs cannot go on.

use std::fmt;

use dacapo_core::{ActivationError, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Description;

/// The reason why an open run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// The kind of problem.
    pub cause: StuckCause,
    /// The problem's mark among others of its kind, without the data of one run: a place in the code, the name of an
    /// activity, a task queue. Runs with the same cause and subject are stuck for the same problem.
    #[serde(default)]
    pub subject: String,
    /// The reason as text: what happened, where, and what to do.
    pub reason: String,
    /// Since when the run is stuck.
    #[serde(default)]
    pub since: Timestamp,
    /// How often in a row the run could not be played.
    #[serde(default)]
    pub attempts: u32,
    /// When the run is played again.
    #[serde(default)]
    pub retry: Timestamp,
}

/// The kinds of problem for which a run is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StuckCause {
    /// The code decides something else than was recorded.
    Nondeterminism,
    /// Two plays of the same turn decided differently.
    DoublePlay,
    /// The code broke a rule of the scheduler.
    Violation,
    /// The code panicked.
    Panic,
    /// A turn did not return in time.
    Deadlock,
    /// The code cannot read a recorded or delivered value, or cannot encode one.
    Undecodable,
    /// The policy of the run could not pick.
    Policy,
    /// A value of the turn exceeds a limit.
    Limit,
    /// The turn asks for something that this backend does not support.
    Unsupported,
    /// No such workflow is registered here.
    MissingWorkflow,
    /// An activity of the run has a type that no worker here serves.
    UnservedActivity,
    /// The run, or one of its activities, waits in a task queue that no worker here serves.
    UnservedQueue,
    /// The process died several times while code of the run ran; it is played again after a pause.
    Delayed,
    /// The process died too often while code of the run ran; it waits until it is released.
    Quarantined,
    /// Another build, most likely a newer one, recorded the run, in a format or under rules that this build does not know.
    OtherBuild,
    /// A stored row of the run cannot be read.
    StoreDamaged,
    /// The store refused the turn.
    StoreRefused,
    /// Any other problem of the engine.
    Internal,
    /// A cause that a newer backend has and this build does not know. No store keeps it.
    #[serde(other)]
    Unknown = 255,
}

impl StuckCause {
    /// All causes that this build knows, in the order of their codes.
    pub const ALL: [Self; 18] = [
        Self::Nondeterminism,
        Self::DoublePlay,
        Self::Violation,
        Self::Panic,
        Self::Deadlock,
        Self::Undecodable,
        Self::Policy,
        Self::Limit,
        Self::Unsupported,
        Self::MissingWorkflow,
        Self::UnservedActivity,
        Self::UnservedQueue,
        Self::Delayed,
        Self::Quarantined,
        Self::OtherBuild,
        Self::StoreDamaged,
        Self::StoreRefused,
        Self::Internal,
    ];

    /// Returns the cause for which the core could not play an activation.
    #[doc(hidden)]
    pub fn of_activation(error: &ActivationError) -> Self {
        use ActivationError as E;
        match error {
            E::Nondeterminism(_) => Self::Nondeterminism,
            E::Violation(_) => Self::Violation,
            E::Panic { .. } => Self::Panic,
            E::Refused { .. } => Self::Undecodable,
            E::Policy(_) => Self::Policy,
            E::DoublePlay { .. } => Self::DoublePlay,
            E::UnknownSemantics { .. } => Self::OtherBuild,
            _ => Self::Internal,
        }
    }

    /// Returns the number that stores keep.
    #[doc(hidden)]
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Returns the cause with this number.
    #[doc(hidden)]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.code() == code)
    }
}

impl fmt::Display for StuckCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nondeterminism => "nondeterminism",
            Self::DoublePlay => "two plays differ",
            Self::Violation => "scheduler violation",
            Self::Panic => "panic",
            Self::Deadlock => "deadlock",
            Self::Undecodable => "undecodable value",
            Self::Policy => "policy",
            Self::Limit => "limit exceeded",
            Self::Unsupported => "unsupported",
            Self::MissingWorkflow => "missing workflow",
            Self::UnservedActivity => "unserved activity",
            Self::UnservedQueue => "unserved task queue",
            Self::Delayed => "delayed after crashes",
            Self::Quarantined => "quarantined after crashes",
            Self::OtherBuild => "recorded by another build",
            Self::StoreDamaged => "damaged store",
            Self::StoreRefused => "refused by the store",
            Self::Internal => "internal error",
            Self::Unknown => "a cause that this build does not know",
        })
    }
}

/// Runs that are stuck for the same problem: their cause and subject are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StuckRuns {
    /// The number of these runs.
    pub runs: u64,
    /// The newest of them, with its reason.
    pub example: Description,
}

impl StuckRuns {
    /// This many runs, of which this one is the newest.
    pub fn new(runs: u64, example: Description) -> Self {
        Self { runs, example }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores keep the codes, and clients the names.
    #[test]
    fn code_and_name_of_every_cause_are_read_back() {
        for (code, cause) in (0..).zip(StuckCause::ALL) {
            assert_eq!((cause.code(), StuckCause::from_code(code)), (code, Some(cause)));
            let name = serde_json::to_string(&cause).unwrap();
            assert_eq!(serde_json::from_str::<StuckCause>(&name).unwrap(), cause);
        }
        assert_eq!(StuckCause::from_code(StuckCause::ALL.len() as i64), None);
        assert_eq!(StuckCause::from_code(StuckCause::Unknown.code()), None, "no store keeps it");
        assert_eq!(serde_json::to_string(&StuckCause::UnservedQueue).unwrap(), "\"unserved_queue\"");
    }
}
