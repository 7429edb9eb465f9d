//! The policy that a run is pinned to.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::{Policy, PolicyError, PolicyKind, PolicyOptions, RunScheduler, Scheduler};
use crate::Name;

/// The policy that a run is played by. It is pinned when the run starts, and part of its transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PolicySpec {
    /// The first action in stable order: the policy for production.
    #[default]
    #[n(0)]
    Deterministic,
    /// A seeded draw, for exploring.
    #[n(1)]
    Random {
        /// The seed, usually that of the run.
        #[n(0)]
        seed: u64,
    },
    /// A policy of the user's own, which the process that plays the run provides.
    #[n(2)]
    Own {
        /// The policy's name.
        #[n(0)]
        name: Name,
    },
}

impl PolicySpec {
    /// Creates the scheduler of a run with this policy; `own` makes the user's own policy.
    pub(crate) fn scheduler(&self, own: Option<&dyn Fn() -> Box<dyn Policy>>) -> Result<RunScheduler, PolicyError> {
        let scheduler = match (self, own) {
            (Self::Deterministic, _) => return Ok(RunScheduler::deterministic()),
            (Self::Random { seed }, _) => {
                let options = PolicyOptions { seed: Some(*seed), ..PolicyOptions::default() };
                Scheduler::new(PolicyKind::Random, options)?
            }
            (Self::Own { name }, Some(own)) => Scheduler::with_policy(name.clone(), own()),
            (Self::Own { name }, None) => return Err(PolicyError::UnknownPolicy { name: name.to_string() }),
        };
        Ok(RunScheduler::asking(scheduler))
    }
}
