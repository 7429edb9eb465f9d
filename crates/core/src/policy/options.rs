//! The policy of a run, and its options.

use std::fmt;
use std::str::FromStr;

use super::choice_log::ChoiceLog;
use super::error::PolicyError;

/// The policy that picks among the enabled actions of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PolicyKind {
    /// The first action in stable order: the policy for production.
    #[default]
    Deterministic,
    /// A seeded draw, for exploring the orders a program may meet.
    Random,
    /// The choices of a log, or an error where they do not fit.
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

/// The options of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The seed of the random policy; 0 if there is none. The header of the log holds it.
    pub seed: Option<u64>,
    /// The largest number of choices that may be logged in all; `None` means no limit. Beyond it choosing fails: a log
    /// without its beginning could not be replayed.
    pub max_entries: Option<u64>,
    /// The rule for a replay whose enabled set is not the recorded one.
    pub divergence: Divergence,
}

/// The rule for a replay whose enabled set is not the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Divergence {
    /// The replay fails.
    #[default]
    Strict,
    /// The replay goes on with a warning while the recorded pick is still enabled.
    Lenient,
}
