//! The status of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The status of a run. Every status but [`Status::Open`] is final, as far as this build knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The run goes on, or waits to.
    #[default]
    Open,
    /// The workflow returned a result.
    Completed,
    /// The workflow failed.
    Failed,
    /// The workflow ended as cancelled.
    Cancelled,
    /// A caller ended the run.
    Terminated,
    /// A timeout of the run passed.
    TimedOut,
    /// The run goes on as another one: the workflow continued as new, or failed and is retried by its retry policy.
    ContinuedAsNew,
    /// A status that a newer backend has and this build does not know. No store keeps it.
    #[serde(other)]
    Unknown = 255,
}

impl Status {
    /// All statuses that this build knows, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Open,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Terminated,
        Self::TimedOut,
        Self::ContinuedAsNew,
    ];

    /// Returns the number that stores keep.
    #[doc(hidden)]
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Returns the status with this number.
    #[doc(hidden)]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// Returns what to do instead of sending something to a closed run of this status.
    #[doc(hidden)]
    pub const fn what_to_do(self) -> &'static str {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled | Self::Terminated | Self::TimedOut => {
                "there is nothing to end or release, and what is to be sent needs another run"
            }
            Self::ContinuedAsNew => {
                "call the run that goes on: by `handle.latest()`, or by the workflow id without a run id"
            }
            Self::Open | Self::Unknown => "describe it to see how it goes on",
        }
    }

    /// Returns whether the run may still play turns. False for a status that this build does not know.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Open)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Terminated => "terminated",
            Self::TimedOut => "timed out",
            Self::ContinuedAsNew => "continued as new",
            Self::Unknown => "in a status that this build does not know",
        })
    }
}
