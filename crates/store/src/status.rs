//! How a run stands.

use std::fmt;

/// How a run stands. Everything but the first is final.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Status {
    /// It goes on, or waits to.
    #[default]
    Open,
    /// It returned.
    Completed,
    /// It failed.
    Failed,
    /// It ended as cancelled.
    Cancelled,
    /// Somebody ended it.
    Terminated,
    /// Its time ran out.
    TimedOut,
    /// It went on as another run.
    ContinuedAsNew,
}

impl Status {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Open,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Terminated,
        Self::TimedOut,
        Self::ContinuedAsNew,
    ];

    /// The number that stores keep.
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// The status with this number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }

    /// Whether the run may still play turns.
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
        })
    }
}
