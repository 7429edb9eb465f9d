//! Errors and warnings of policies and their logs.

use std::fmt;

use thiserror::Error;

use super::action::Action;

/// The reason why no action was chosen. Nothing was logged and no unit was taken when it is returned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The set to choose from was empty.
    #[error("there is nothing to choose from: ask only while at least one action is enabled")]
    NoEnabledActions,
    /// No policy has this name.
    #[error(
        "there is no policy {name:?}: write \"deterministic\" or \"random\"; a replay is built from its log, with Scheduler::from_log"
    )]
    UnknownPolicy {
        /// The name that was given.
        name: String,
    },
    /// The enabled set is not the one that was recorded.
    #[error(
        "divergence at step {step}: the recording chose among {}, now enabled is {}; play the log with the code and input that recorded it",
        Shown(expected),
        Shown(actual)
    )]
    Divergence {
        /// The recorded step.
        step: u64,
        /// The recorded set.
        expected: Vec<Action>,
        /// The set that is enabled now.
        actual: Vec<Action>,
    },
    /// The program asks for more choices than were recorded.
    #[error(
        "the choice log ends after {position} choices and the program asks for one more; play the log with the code and input that recorded it"
    )]
    LogExhausted {
        /// The number of choices that were followed.
        position: u64,
    },
    /// The program asks for fewer choices than were recorded.
    #[error(
        "the turn ended after {position} choices and its recording holds {left} more; play the log with the code and input that recorded it"
    )]
    LogNotExhausted {
        /// The number of choices that were followed.
        position: u64,
        /// The number of choices that were not.
        left: u64,
    },
    /// These bytes or entries are no choice log.
    #[error("this is no valid choice log: {reason}; restore it from where it was recorded, or record it again")]
    InvalidLog {
        /// The problem.
        reason: String,
    },
    /// The log holds as many choices as it may.
    #[error("the choice log holds its limit of {limit} choices; raise max_entries, or leave it unset for no limit")]
    LogFull {
        /// The limit, as it was set.
        limit: u64,
    },
    /// A policy answered with an index that is not in the set.
    #[error("the policy answered {index} for a set of {len} actions; it must answer an index below the set's length")]
    OutOfRange {
        /// The answer.
        index: usize,
        /// The length of the set.
        len: usize,
    },
    /// An XOR point has more branches than a log may hold.
    #[error(
        "a choice among {n} branches was asked for and the most is {limit}; choose in two stages, or draw a random number"
    )]
    TooManyBranches {
        /// The number of branches asked for.
        n: u32,
        /// The largest number allowed.
        limit: u32,
    },
    /// The units of a round were not handed over in the run's order.
    #[error(
        "the units of a round came out of order: {}; sort them by id, handlers last or handlers first",
        Shown(units)
    )]
    Unsorted {
        /// The units, in the order in which they were handed over.
        units: Vec<Action>,
    },
    /// A policy of the user's own refused to choose.
    #[error("the policy refused to choose: {reason}; see the policy's own documentation")]
    Refused {
        /// The reason.
        reason: String,
    },
}

impl PolicyError {
    pub(crate) fn invalid(reason: impl fmt::Display) -> Self {
        Self::InvalidLog { reason: reason.to_string() }
    }
}

/// A difference that a lenient replay accepted, because the recorded pick was still enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWarning {
    /// The recorded step.
    pub step: u64,
    /// The recorded set.
    pub expected: Vec<Action>,
    /// The set that was enabled.
    pub actual: Vec<Action>,
}

impl fmt::Display for PolicyWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, actual) = (Shown(&self.expected), Shown(&self.actual));
        write!(
            f,
            "step {}: the recording chose among {expected}, enabled was {actual}; its pick was followed",
            self.step
        )
    }
}

/// A set as people read it: the first few members and how many more there are.
struct Shown<'a>(&'a [Action]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FEW: usize = 16;
        f.write_str("{")?;
        for (place, action) in self.0.iter().take(FEW).enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{action}")?;
        }
        match self.0.len().saturating_sub(FEW) {
            0 => f.write_str("}"),
            more => write!(f, " and {more} more}}"),
        }
    }
}
