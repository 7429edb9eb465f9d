//! The exploring policy: a seeded draw.

use super::Policy;
use super::enabled::Enabled;
use super::error::PolicyError;
use crate::rng::{self, Rng};

/// A policy that draws among the enabled actions, all equally likely. The generator is [`Rng`], which will give the
/// same numbers for the same seed for ever, so a seed is enough to see an order again; the log, which the scheduler
/// writes, is enough to see it again even after the program has changed how often it asks.
///
/// In a run each turn draws from a generator of its own, derived from the seed and the turn's number: a run that was
/// rebuilt from its recording goes on as one that stayed in memory.
///
/// ```
/// use dacapo_core::{Action, PolicyKind, PolicyOptions, Scheduler, Seg, UnitId};
/// let enabled: Vec<Action> = (0..4).map(|index| Action::Unit(UnitId::root().child(Seg::P(index)))).collect();
/// let options = PolicyOptions { seed: Some(7), ..PolicyOptions::default() };
///
/// let mut scheduler = Scheduler::new(PolicyKind::Random, options.clone())?;
/// let picks = (0..5).map(|_| scheduler.choose(&enabled)).collect::<Result<Vec<_>, _>>()?;
/// let mut again = Scheduler::new(PolicyKind::Random, options)?;
/// assert_eq!((0..5).map(|_| again.choose(&enabled)).collect::<Result<Vec<_>, _>>()?, picks);
///
/// let logged: Vec<_> = scheduler.get_log().iter().map(|choice| choice.chosen).collect();
/// assert_eq!(logged, picks);
/// assert_eq!(scheduler.get_log().header().to_string(), "xoshiro256++ v1, seed 7");
/// # Ok::<(), dacapo_core::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    seed: u64,
    rng: Rng,
}

impl Random {
    /// Creates a policy that draws from the generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, rng: Rng::from_seed(seed) }
    }
}

impl Policy for Random {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        if enabled.is_empty() {
            Err(PolicyError::NoEnabledActions)
        } else {
            Ok(self.rng.below(enabled.len() as u64) as usize)
        }
    }

    fn begin_turn(&mut self, turn: u64) {
        self.rng = Rng::from_seed(rng::derive(self.seed, turn));
    }
}
