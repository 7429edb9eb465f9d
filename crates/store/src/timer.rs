//! Timers: moments at which something becomes due.

use dacapo_core::{Seq, Timestamp};

use crate::RunNo;

/// A moment at which something becomes due for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerRow {
    /// When.
    pub due: Timestamp,
    /// Whose.
    pub run: RunNo,
    /// What.
    pub kind: TimerKind,
}

/// What becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TimerKind {
    /// A timer of the workflow fires.
    Sleep(Seq),
    /// A run whose start was delayed begins.
    Start,
    /// The time of one run is over.
    RunTimeout,
    /// The time of the whole chain of runs is over.
    ExecutionTimeout,
    /// A run is looked at again: it is stuck, or has work that is in no other row.
    Retry,
    /// An activity has waited too long in its queue.
    ScheduleToStart(Seq),
    /// An activity has taken too long, all attempts together.
    ScheduleToClose(Seq),
}

impl TimerKind {
    /// The numbers that stores keep: the kind, and the operation it concerns.
    pub const fn code(self) -> (i64, u64) {
        match self {
            Self::Sleep(seq) => (0, seq.0),
            Self::Start => (1, 0),
            Self::RunTimeout => (2, 0),
            Self::ExecutionTimeout => (3, 0),
            Self::Retry => (4, 0),
            Self::ScheduleToStart(seq) => (5, seq.0),
            Self::ScheduleToClose(seq) => (6, seq.0),
        }
    }

    /// The kind with these numbers.
    pub const fn from_code(kind: i64, seq: u64) -> Option<Self> {
        Some(match kind {
            0 => Self::Sleep(Seq(seq)),
            1 => Self::Start,
            2 => Self::RunTimeout,
            3 => Self::ExecutionTimeout,
            4 => Self::Retry,
            5 => Self::ScheduleToStart(Seq(seq)),
            6 => Self::ScheduleToClose(Seq(seq)),
            _ => return None,
        })
    }
}
