//! The source of the scheduler's picks: this turn's recording, or else the run's policy.

use super::Policy;
use super::deterministic::Deterministic;
use super::enabled::Enabled;
use super::error::{PolicyError, PolicyWarning};
use super::options::Divergence;
use super::replay::Replay;
use super::round::{Draw, Round};
use super::turn_choices::TurnChoices;
use crate::UnitId;

/// A run's policy. Two policies have variants of their own: the one that needs neither sets nor log, and the one that
/// can follow a whole round without comparing set with set.
enum Live {
    Deterministic(Deterministic),
    Replay(Box<Replay>),
    Policy(Box<dyn Policy>),
}

impl Live {
    fn policy(&mut self) -> &mut dyn Policy {
        match self {
            Self::Deterministic(policy) => policy,
            Self::Replay(policy) => policy.as_mut(),
            Self::Policy(policy) => policy.as_mut(),
        }
    }
}

pub(crate) struct Picker {
    live: Live,
    recorded: Option<Replay>,
}

impl Picker {
    pub(crate) fn deterministic() -> Self {
        Self { live: Live::Deterministic(Deterministic), recorded: None }
    }

    pub(crate) fn replay(replay: Replay) -> Self {
        Self { live: Live::Replay(Box::new(replay)), recorded: None }
    }

    pub(crate) fn policy(policy: Box<dyn Policy>) -> Self {
        Self { live: Live::Policy(policy), recorded: None }
    }

    /// Returns whether every answer is the first of the set.
    pub(crate) fn is_deterministic(&self) -> bool {
        self.recorded.is_none() && matches!(self.live, Live::Deterministic(_))
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    pub(crate) fn warnings(&self) -> &[PolicyWarning] {
        match &self.live {
            Live::Replay(replay) => replay.warnings(),
            Live::Deterministic(_) | Live::Policy(_) => &[],
        }
    }

    pub(crate) fn begin_turn(&mut self, turn: u64, recorded: Option<TurnChoices>) {
        self.live.policy().begin_turn(turn);
        // A recorded turn is what happened: no option makes its replay lenient.
        self.recorded = recorded.map(|choices| Replay::new(choices.into(), Divergence::Strict));
    }

    pub(crate) fn begin_round(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            recorded.begin_round();
        }
        if let Live::Replay(replay) = &mut self.live {
            replay.begin_round();
        }
    }

    pub(crate) fn end_turn(&mut self) -> Result<(), PolicyError> {
        match self.recorded.take().map(|recorded| (recorded.position(), recorded.left())) {
            None | Some((_, 0)) => Ok(()),
            Some((position, left)) => Err(PolicyError::LogNotExhausted { position, left }),
        }
    }

    /// Returns the index of the action that happens next.
    pub(crate) fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        let policy = self.live.policy();
        if let Some(recorded) = &mut self.recorded {
            let index = recorded.choose(enabled)?;
            policy.follow(enabled, index);
            return Ok(index);
        }
        match policy.choose(enabled)? {
            index if index < enabled.len() => Ok(index),
            index => Err(PolicyError::OutOfRange { index, len: enabled.len() }),
        }
    }

    /// Picks the next unit of a round that has units left.
    pub(crate) fn draw(&mut self, round: &Round, alive: &mut dyn FnMut(&UnitId) -> bool) -> Result<Draw, PolicyError> {
        if let Some(recorded) = &mut self.recorded {
            let draw = recorded.draw(round, alive)?;
            // When the turn was recorded, the policy was also asked for picks that fell on dropped units.
            let (Draw::Unit(place) | Draw::Dropped(place)) = draw;
            self.live.policy().follow(&round.enabled(), round.rest().rank(place));
            return Ok(draw);
        }
        if let Live::Replay(replay) = &mut self.live {
            return replay.draw(round, alive);
        }
        // A policy is shown units that may have been dropped, because checking each of them at each step would cost n²
        // for a round of n. A unit is checked only when the pick falls on it.
        let index = self.choose(&round.enabled())?;
        let place = round.rest().nth(index).expect("an index below the length of the set");
        Ok(if round.is_alive(place, alive) { Draw::Unit(place) } else { Draw::Dropped(place) })
    }
}
