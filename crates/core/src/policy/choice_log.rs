//! The choice log: all picks of a policy, replayable.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::cursor::LogCursor;
use super::enabled::{Enabled, is_canonical};
use super::error::PolicyError;
use super::item::{Item, MAX_BRANCHES, MAX_TIMES};
use super::recorder::Recorder;
use super::remaining::Remaining;
use super::turn_choices::TurnChoices;
use crate::{Name, rng};

/// One choice of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The choice's number; the numbers of a log have no gaps.
    pub step: u64,
    /// All enabled actions, in canonical order.
    pub enabled: Vec<Action>,
    /// The action that was picked.
    pub chosen: Action,
}

/// The policy that made the choices of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The generator of the random policy, or the name of another policy.
    pub algorithm: Name,
    /// The version of the generator; 0 for a policy without one.
    pub version: u32,
    /// The seed of the generator.
    pub seed: Option<u64>,
}

impl LogHeader {
    pub(crate) fn random(seed: u64) -> Self {
        Self { algorithm: Name::from_static(rng::ALGORITHM), version: rng::VERSION, seed: Some(seed) }
    }

    pub(crate) fn named(algorithm: Name) -> Self {
        Self { algorithm, version: 0, seed: None }
    }

    fn check(&self) -> Result<(), PolicyError> {
        if self.algorithm == rng::ALGORITHM && self.version > rng::VERSION {
            return Err(PolicyError::invalid(format!("it was drawn by {self}, which is newer than this program")));
        }
        Ok(())
    }
}

impl fmt::Display for LogHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{}", self.algorithm, self.version)?;
        self.seed.map_or(Ok(()), |seed| write!(f, ", seed {seed}"))
    }
}

/// All picks of a policy in order, each with the full set it was made from.
///
/// In memory and in its encoded forms a set is kept once, with what was picked from it: a round of n units costs n, and
/// a set of one that comes again and again costs nothing. A log is valid by construction: every way to make one checks
/// that sets are sorted and not empty, that each pick is in its set, and that steps have no gaps.
///
/// ```
/// use dacapo_core::{ChoiceLog, PolicyKind, PolicyOptions, Scheduler};
/// let mut scheduler = Scheduler::new(PolicyKind::Random, PolicyOptions::default())?;
/// scheduler.pick_branch(3)?;
/// let log = scheduler.get_log();
/// assert_eq!((log.len(), log.iter().next().unwrap().enabled.len()), (1, 3));
/// assert_eq!(ChoiceLog::from_bytes(&log.to_bytes())?, *log);
/// assert_eq!(ChoiceLog::from_json(&log.to_json())?, *log);
/// # Ok::<(), dacapo_core::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceLog {
    pub(super) header: LogHeader,
    pub(super) first_step: u64,
    /// The number of choices that the items hold.
    pub(super) len: u64,
    pub(super) items: Vec<Item>,
}

impl ChoiceLog {
    pub(crate) fn empty(header: LogHeader, first_step: u64) -> Self {
        Self { header, first_step, len: 0, items: Vec::new() }
    }

    /// Creates a log of these choices, for instance ones that were exported, inspected and cut short. Their steps may
    /// start at any number.
    pub fn from_choices(header: LogHeader, choices: impl IntoIterator<Item = Choice>) -> Result<Self, PolicyError> {
        let mut choices = choices.into_iter().peekable();
        let first_step = choices.peek().map_or(0, |choice| choice.step);
        let mut recorder = Recorder::new(header, first_step);
        recorder.log().header.check()?;
        for choice in choices {
            let expected = recorder.log().next_step()?;
            if choice.step != expected {
                let reason = format!("step {} stands where step {expected} should", choice.step);
                return Err(PolicyError::invalid(reason));
            }
            check_set(&choice.enabled)?;
            let place = choice.enabled.iter().position(|action| *action == choice.chosen);
            let reason = || format!("step {}: {} was chosen and is not in the set", choice.step, choice.chosen);
            recorder.choice(&Enabled::sorted(&choice.enabled), place.ok_or_else(|| PolicyError::invalid(reason()))?);
        }
        Ok(recorder.into_log())
    }

    /// Joins the logs of a run's turns, in order, into the log of the whole run.
    pub fn from_turns(turns: impl IntoIterator<Item = TurnChoices>) -> Result<Self, PolicyError> {
        let mut turns = turns.into_iter().map(Self::from);
        let mut whole = turns.next().unwrap_or_else(|| Self::empty(LogHeader::named(Name::from_static("none")), 0));
        for turn in turns {
            if turn.header != whole.header {
                return Err(PolicyError::invalid(format!("a turn of {} follows one of {}", turn.header, whole.header)));
            }
            let expected = whole.next_step()?;
            if turn.first_step != expected {
                let reason =
                    format!("a turn begins at step {}, the one before it ends before {expected}", turn.first_step);
                return Err(PolicyError::invalid(reason));
            }
            whole.len += turn.len;
            whole.items.extend(turn.items);
        }
        Ok(whole)
    }

    /// Returns the policy that made the choices.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Returns the step of the first choice.
    pub fn first_step(&self) -> u64 {
        self.first_step
    }

    /// Returns the number of choices.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether no choice was made.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all choices in order, each with its full set. A set is built when its choice is reached.
    pub fn iter(&self) -> impl Iterator<Item = Choice> {
        let mut cursor = LogCursor::default();
        std::iter::from_fn(move || {
            let step = self.first_step + cursor.position();
            let (enabled, chosen) = cursor.peek(&self.items)?;
            let chosen = enabled.get(chosen)?;
            let choice = Choice { step, enabled: enabled.iter().collect(), chosen };
            cursor.advance(&self.items);
            Some(choice)
        })
    }

    /// Creates a log of items that came from outside, and checks them.
    pub(super) fn checked(header: LogHeader, first_step: u64, items: Vec<Item>) -> Result<Self, PolicyError> {
        header.check()?;
        let log = Self { header, first_step, len: check_items(&items)?, items };
        log.next_step()?;
        Ok(log)
    }

    fn next_step(&self) -> Result<u64, PolicyError> {
        let next = self.first_step.checked_add(self.len).filter(|next| *next <= MAX_STEP);
        next.ok_or_else(|| PolicyError::invalid("its steps are numbered beyond what a run can reach"))
    }
}

/// The last step that a log from outside may name. It leaves room for more steps than a run can make after it.
const MAX_STEP: u64 = u64::MAX >> 1;

fn check_set(set: &[Action]) -> Result<(), PolicyError> {
    if set.is_empty() {
        return Err(PolicyError::invalid("a set is empty"));
    }
    if !is_canonical(set) {
        return Err(PolicyError::invalid("a set is not sorted"));
    }
    Ok(())
}

/// Checks the items in order and counts their choices.
fn check_items(items: &[Item]) -> Result<u64, PolicyError> {
    let (mut len, mut size, mut rest) = (0u64, 0, Remaining::default());
    for (number, item) in items.iter().enumerate() {
        let bad = |reason: &str| PolicyError::invalid(format!("item {number}: {reason}"));
        let choices = match item {
            Item::Set(set) => {
                check_set(set)?;
                size = set.len();
                rest.reset(size);
                0
            }
            Item::Again if size == 0 => return Err(bad("there is no set to open again")),
            Item::Again => {
                rest.reset(size);
                0
            }
            Item::Pick(place) if !rest.remove(*place as usize) => return Err(bad("what was chosen is not in the set")),
            Item::Pick(_) => 1,
            Item::Drop(place) if !rest.remove(*place as usize) => {
                return Err(bad("what was dropped is not in the set"));
            }
            Item::Drop(_) => 0,
            Item::Lone(times) if !(1..=MAX_TIMES).contains(times) => {
                return Err(bad("a run of no or too many choices"));
            }
            Item::Lone(_) if size != 1 => return Err(bad("a run of choices from a set that does not have one member")),
            Item::Lone(times) => {
                rest.reset(0);
                *times
            }
            Item::Branch { of, .. } if *of > MAX_BRANCHES => return Err(bad("an XOR point has too many branches")),
            Item::Branch { of, chosen } if chosen >= of => {
                return Err(bad("the branch that was chosen does not exist"));
            }
            Item::Branch { .. } => 1,
        };
        len = len.checked_add(choices).ok_or_else(|| bad("there are more choices than numbers"))?;
    }
    Ok(len)
}
