//! Timers: moments at which a run or one of its operations is due.

use dacapo_core::{Seq, Timestamp};

use crate::RunNo;

/// A stored timer of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerRow {
    /// When the timer is due.
    pub due: Timestamp,
    /// The run that the timer belongs to.
    pub run: RunNo,
    /// The timer's kind.
    pub kind: TimerKind,
}

/// The kind of a timer: what happens when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TimerKind {
    /// A timer of the workflow fires.
    Sleep(Seq),
    /// A run whose start was delayed starts.
    Start,
    /// The timeout of one run.
    RunTimeout,
    /// The timeout of the whole chain of runs.
    ExecutionTimeout,
    /// The engine looks at a run again: it is stuck, or has work that is in no other row.
    Retry,
    /// The schedule-to-start timeout: the activity has waited too long in its queue.
    ScheduleToStart(Seq),
    /// The schedule-to-close timeout: the activity has taken too long, all attempts together.
    ScheduleToClose(Seq),
}

impl TimerKind {
    /// Returns the numbers that stores keep: the kind, and the operation it concerns.
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

    /// Returns the kind with these numbers.
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
