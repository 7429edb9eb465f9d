//! The scheduler: asks the policy, checks its answer, logs it.

use std::fmt;
use std::sync::Arc;

use super::Policy;
use super::action::Action;
use super::choice_log::{ChoiceLog, LogHeader};
use super::enabled::{Enabled, canonical, is_canonical};
use super::error::{PolicyError, PolicyWarning};
use super::item::MAX_BRANCHES;
use super::options::{PolicyKind, PolicyOptions};
use super::picker::Picker;
use super::random::Random;
use super::recorder::Recorder;
use super::replay::Replay;
use super::round::{Draw, Round};
use super::turn_choices::TurnChoices;
use crate::{Name, UnitId};

/// A scheduler: it decides, by a policy, what happens next, and logs its choices.
///
/// On its own it is asked with [`choose`](Self::choose). The executor goes turn by turn: `begin_turn`; for each round
/// `begin_round` and then `next_unit` until none is left, with `pick_branch` wherever one of several equals is taken;
/// `end_turn`, which returns the turn's choices.
pub struct Scheduler {
    picker: Picker,
    header: LogHeader,
    recorder: Recorder,
    round: Round,
    limit: Option<u64>,
    position: u64,
}

impl Scheduler {
    /// Creates a scheduler with one of the three policies. A log to be replayed that is longer than `max_entries` is
    /// refused.
    pub fn new(kind: PolicyKind, options: PolicyOptions) -> Result<Self, PolicyError> {
        let limit = options.max_entries;
        let (picker, header, first_step) = match kind {
            PolicyKind::Deterministic => return Ok(Self { limit, ..Self::deterministic() }),
            PolicyKind::Random => {
                let seed = options.seed.unwrap_or(0);
                (Picker::policy(Box::new(Random::new(seed))), LogHeader::random(seed), 0)
            }
            PolicyKind::Replay(log) => {
                if let Some(limit) = limit.filter(|limit| log.len() > *limit) {
                    return Err(PolicyError::LogFull { limit });
                }
                let (header, first_step) = (log.header().clone(), log.first_step());
                (Picker::replay(Replay::new(log, options.divergence)), header, first_step)
            }
        };
        Ok(Self { limit, ..Self::build(picker, header, first_step) })
    }

    /// Creates a scheduler with the deterministic policy, which needs no options.
    pub(crate) fn deterministic() -> Self {
        Self::build(Picker::deterministic(), LogHeader::named(Name::from_static("deterministic")), 0)
    }

    /// Creates a scheduler with a policy of the caller's own. The header of the log holds the name.
    pub fn with_policy(name: impl Into<Name>, policy: Box<dyn Policy>) -> Self {
        Self::build(Picker::policy(policy), LogHeader::named(name.into()), 0)
    }

    /// Creates a scheduler that replays this log strictly: `new` with [`PolicyKind::Replay`] and no options.
    pub fn from_log(log: ChoiceLog) -> Result<Self, PolicyError> {
        Self::new(PolicyKind::Replay(log), PolicyOptions::default())
    }

    fn build(picker: Picker, header: LogHeader, first_step: u64) -> Self {
        let recorder = Recorder::new(header.clone(), first_step);
        Self { picker, header, recorder, round: Round::default(), limit: None, position: 0 }
    }

    /// Chooses among these actions. Their order does not matter.
    pub fn choose(&mut self, enabled: &[Action]) -> Result<Action, PolicyError> {
        if self.is_deterministic() {
            // The least of the set is the first of its canonical view; the others need no sorting.
            return enabled.iter().min().cloned().ok_or(PolicyError::NoEnabledActions);
        }
        if enabled.is_sorted() {
            let index = self.ask(&Enabled::sorted(enabled))?;
            return Ok(enabled[index].clone());
        }
        let sorted = canonical(enabled);
        let index = self.ask(&Enabled::picked(&sorted))?;
        Ok(sorted[index].clone())
    }

    /// Returns the choices since the turn began, or since the scheduler was created if it plays no turns. The log is
    /// empty if the policy is deterministic.
    pub fn get_log(&self) -> &ChoiceLog {
        self.recorder.log()
    }

    /// Returns how many choices were made and logged in all.
    pub fn get_position(&self) -> u64 {
        self.position
    }

    /// Returns the differences that a lenient replay accepted.
    pub fn warnings(&self) -> &[PolicyWarning] {
        self.picker.warnings()
    }

    /// Returns the units of the current round whose step is still to come.
    pub fn enabled(&self) -> Vec<Action> {
        self.round.enabled().iter().collect()
    }

    /// Returns whether every choice is the first in the run's order and nothing is logged. The executor asks this after
    /// `begin_turn`; if it is so, it takes the units of its rounds in order and calls neither `begin_round` nor
    /// `next_unit`.
    pub fn is_deterministic(&self) -> bool {
        self.picker.is_deterministic()
    }

    /// Begins a turn. With a recording the turn follows it and nothing else; without one the policy is asked.
    pub fn begin_turn(&mut self, turn: u64, recorded: Option<TurnChoices>) {
        if recorded.is_none() && self.is_deterministic() {
            return; // Nothing is drawn and nothing is logged.
        }
        let next_step = self.get_log().first_step() + self.get_log().len();
        self.recorder = match &recorded {
            Some(choices) => Recorder::new(choices.log().header().clone(), choices.log().first_step()),
            None => Recorder::new(self.header.clone(), next_step),
        };
        self.round = Round::default();
        self.picker.begin_turn(turn, recorded);
    }

    /// Begins a round of these units, which are in the run's order.
    pub fn begin_round(&mut self, units: Vec<UnitId>) -> Result<(), PolicyError> {
        let set: Arc<[Action]> = units.into_iter().map(Action::Unit).collect();
        if !is_canonical(&set) {
            return Err(PolicyError::Unsorted { units: set.to_vec() });
        }
        self.round = Round::new(set);
        self.picker.begin_round();
        Ok(())
    }

    /// Picks among the units of the round that were not picked yet and are still alive; `None` when none is left.
    ///
    /// A unit that was dropped during the round leaves the set, and the log's sets, when a pick falls on it: `alive` is
    /// asked about the pick only.
    pub fn next_unit(&mut self, alive: &mut dyn FnMut(&UnitId) -> bool) -> Result<Option<UnitId>, PolicyError> {
        while !self.round.rest().is_empty() {
            let draw = self.picker.draw(&self.round, alive)?;
            match draw {
                Draw::Unit(place) => {
                    self.check_room()?;
                    if !self.is_deterministic() {
                        self.recorder.choice(&self.round.enabled(), self.round.rest().rank(place));
                        self.position += 1;
                    }
                    self.round.take(place);
                    return Ok(self.round.unit(place).cloned());
                }
                Draw::Dropped(place) => {
                    if !self.is_deterministic() {
                        self.recorder.dropped(&self.round.enabled(), self.round.rest().rank(place));
                    }
                    self.round.take(place);
                }
            }
        }
        Ok(None)
    }

    /// Takes one of `n` equals, counted from zero.
    pub fn pick_branch(&mut self, n: u32) -> Result<u32, PolicyError> {
        match n {
            0 => Err(PolicyError::NoEnabledActions),
            1..=MAX_BRANCHES => self.ask(&Enabled::branches(n)).map(|index| index as u32),
            _ => Err(PolicyError::TooManyBranches { n, limit: MAX_BRANCHES }),
        }
    }

    /// Ends the turn and returns its choices; there are none if the policy is deterministic. A recording of which
    /// choices are left is an error.
    pub fn end_turn(&mut self) -> Result<Option<TurnChoices>, PolicyError> {
        if self.is_deterministic() {
            return Ok(None);
        }
        self.picker.end_turn()?;
        let next_step = self.get_log().first_step() + self.get_log().len();
        let fresh = Recorder::new(self.header.clone(), next_step);
        let log = std::mem::replace(&mut self.recorder, fresh).into_log();
        self.round = Round::default();
        Ok(Some(log.into()))
    }

    /// Asks the policy, checks its answer and logs it.
    fn ask(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        if enabled.is_empty() {
            return Err(PolicyError::NoEnabledActions);
        }
        self.check_room()?;
        let index = self.picker.choose(enabled)?;
        if !self.is_deterministic() {
            self.recorder.choice(enabled, index);
            self.position += 1;
        }
        Ok(index)
    }

    /// Checks that the log has room for a choice. The limit does not apply to a recorded turn, which may be older than
    /// the limit.
    fn check_room(&self) -> Result<(), PolicyError> {
        match self.limit.filter(|_| !self.picker.is_recorded()) {
            Some(limit) if self.position >= limit => Err(PolicyError::LogFull { limit }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("policy", &format_args!("{}", self.header))
            .field("position", &self.position)
            .field("log", self.get_log())
            .finish_non_exhaustive()
    }
}
