//! Which policy a run has, and how it is set up.

use std::fmt;
use std::str::FromStr;

use super::choice_log::ChoiceLog;
use super::error::PolicyError;

/// Who picks among the enabled actions of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PolicyKind {
    /// The first in stable order. This is what production runs.
    #[default]
    Deterministic,
    /// A seeded draw, for exploring the orders a program may meet.
    Random,
    /// What a log says, or a loud failure.
    Replay(ChoiceLog),
}

impl FromStr for PolicyKind {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Self, PolicyError> {
        match name {
            "deterministic" => Ok(Self::Deterministic),
            "random" => Ok(Self::Random),
            _ => Err(PolicyError::UnknownPolicy { name: name.to_owned() }),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deterministic => "deterministic",
            Self::Random => "random",
            Self::Replay(_) => "replay",
        })
    }
}

/// How a policy is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The seed of the random policy; 0 if there is none. It stands in the header of the log.
    pub seed: Option<u64>,
    /// How many choices may be logged in all; without it there is no limit. Beyond it choosing fails: a log that forgot
    /// its beginning could not be replayed.
    pub max_entries: Option<u64>,
    /// What a replay does when the enabled set is not the recorded one.
    pub divergence: Divergence,
}

/// What a replay does when the enabled set is not the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Divergence {
    /// It fails.
    #[default]
    Strict,
    /// It goes on with a warning while the recorded pick is still enabled.
    Lenient,
}
