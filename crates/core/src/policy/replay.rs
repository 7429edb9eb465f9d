//! The replaying policy: the choices of a log, or an error where they do not fit.

use std::collections::BTreeSet;

use super::Policy;
use super::action::Action;
use super::choice_log::ChoiceLog;
use super::cursor::{InRound, LogCursor};
use super::enabled::Enabled;
use super::error::{PolicyError, PolicyWarning};
use super::options::Divergence;
use super::round::{Draw, Round};
use crate::UnitId;

/// A policy that follows a log choice by choice. A set that is not the recorded one is a divergence, a question after
/// the last choice is an error too: it never picks on its own.
///
/// ```
/// use dacapo_core::{Action, PolicyError, PolicyKind, PolicyOptions, Scheduler, Seg, UnitId};
/// let units: Vec<Action> = (0..4).map(|index| Action::Unit(UnitId::root().child(Seg::P(index)))).collect();
/// let options = PolicyOptions { seed: Some(3), ..PolicyOptions::default() };
///
/// // Record,
/// let mut scheduler = Scheduler::new(PolicyKind::Random, options)?;
/// let picks = [scheduler.choose(&units)?, scheduler.choose(&units[1..])?];
///
/// // and replay: the same questions get the same answers.
/// let mut replay = Scheduler::from_log(scheduler.get_log().clone())?;
/// assert_eq!([replay.choose(&units)?, replay.choose(&units[1..])?], picks);
/// assert_eq!(replay.choose(&units), Err(PolicyError::LogExhausted { position: 2 }));
///
/// // Other questions are refused.
/// let mut replay = Scheduler::from_log(scheduler.get_log().clone())?;
/// assert!(matches!(replay.choose(&units[..3]), Err(PolicyError::Divergence { step: 0, .. })));
/// # Ok::<(), PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay {
    log: ChoiceLog,
    cursor: LogCursor,
    divergence: Divergence,
    warnings: Vec<PolicyWarning>,
}

impl Replay {
    /// Creates a policy that follows this log from its beginning.
    pub fn new(log: ChoiceLog, divergence: Divergence) -> Self {
        Self { log, cursor: LogCursor::default(), divergence, warnings: Vec::new() }
    }

    /// Returns how many choices were followed.
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Returns how many choices are left to follow.
    pub fn left(&self) -> u64 {
        self.log.len() - self.position()
    }

    /// Returns the differences that a lenient replay accepted.
    pub fn warnings(&self) -> &[PolicyWarning] {
        &self.warnings
    }

    pub(crate) fn begin_round(&mut self) {
        self.cursor.fall_out_of_step();
    }

    /// Returns the log's next pick of this round, or the next unit that was found dropped.
    pub(crate) fn draw(&mut self, round: &Round, alive: &mut dyn FnMut(&UnitId) -> bool) -> Result<Draw, PolicyError> {
        if round.rest().is_whole() {
            self.cursor.open(&self.log.items, round.set());
        }
        match self.cursor.in_round(&self.log.items) {
            Some(said @ InRound::Pick(place)) if round.is_alive(place, alive) => {
                self.cursor.keep_step(said);
                Ok(Draw::Unit(place))
            }
            Some(said @ InRound::Drop(place)) if !round.is_alive(place, alive) => {
                self.cursor.keep_step(said);
                Ok(Draw::Dropped(place))
            }
            _ => self.search(round, alive),
        }
    }

    /// Finds the next pick without the shortcut, for a log that does not open exactly this round here: one that was cut
    /// or written by hand, or one from which a lenient replay deviates. It compares set with set, once the dropped
    /// units that the log does not hold have left.
    fn search(&mut self, round: &Round, alive: &mut dyn FnMut(&UnitId) -> bool) -> Result<Draw, PolicyError> {
        self.cursor.fall_out_of_step();
        let (enabled, mut left) = (round.enabled(), round.rest().iter());
        if !left.any(|place| round.is_alive(place, alive)) {
            return Ok(Draw::Dropped(round.rest().nth(0).expect("something is left of a round that is asked about")));
        }
        let recorded = self.cursor.peek(&self.log.items).map(|(recorded, _)| recorded);
        if !recorded.is_some_and(|recorded| recorded.same(&enabled)) {
            let known: BTreeSet<Action> = recorded.iter().flat_map(Enabled::iter).collect();
            let unknown = |place: &usize| !known.contains(&round.set()[*place]) && !round.is_alive(*place, alive);
            if let Some(place) = round.rest().iter().find(unknown) {
                return Ok(Draw::Dropped(place));
            }
        }
        let index = self.answer(&enabled, &mut |action| action.unit().is_some_and(&mut *alive))?;
        Ok(Draw::Unit(round.rest().nth(index).expect("an answer is an index of the set")))
    }

    /// Returns the index of the recorded pick in the set that is enabled now.
    fn answer(&mut self, enabled: &Enabled<'_>, alive: &mut dyn FnMut(&Action) -> bool) -> Result<usize, PolicyError> {
        let position = self.cursor.position();
        let (recorded, chosen) = self.cursor.peek(&self.log.items).ok_or(PolicyError::LogExhausted { position })?;
        let same = recorded.same(enabled);
        let find = |pick: Action| enabled.iter().position(|action| action == pick);
        let place = if same { Some(chosen) } else { recorded.get(chosen).and_then(find) };
        let index = match place.filter(|index| enabled.get(*index).is_some_and(|pick| alive(&pick))) {
            Some(index) if same => index,
            place => {
                let (step, expected) = (self.log.first_step() + position, recorded.iter().collect::<Vec<_>>());
                let actual: Vec<_> = enabled.iter().collect();
                match (place, self.divergence) {
                    (Some(index), _) if same_members(&expected, &actual) => index,
                    (Some(index), Divergence::Lenient) => {
                        self.warnings.push(PolicyWarning { step, expected, actual });
                        index
                    }
                    _ => {
                        let actual = actual.into_iter().filter(alive).collect();
                        return Err(PolicyError::Divergence { step, expected, actual });
                    }
                }
            }
        };
        self.cursor.advance(&self.log.items);
        Ok(index)
    }
}

impl Policy for Replay {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        self.answer(enabled, &mut |_| true)
    }

    fn follow(&mut self, _: &Enabled<'_>, _: usize) {
        self.cursor.advance(&self.log.items);
    }
}

/// Returns whether two sets are equal in any order: a run has one of two orders, and a log written by hand may have the
/// other.
fn same_members(a: &[Action], b: &[Action]) -> bool {
    let (mut a, mut b): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
    a.sort();
    b.sort();
    a == b
}
