//! The current round, as the scheduler sees it.

use std::sync::Arc;

use super::action::Action;
use super::enabled::Enabled;
use super::remaining::Remaining;
use crate::UnitId;

/// The units of a round, and those of them whose step is still to come.
#[derive(Debug, Default)]
pub(crate) struct Round {
    set: Arc<[Action]>,
    rest: Remaining,
}

impl Round {
    pub(crate) fn new(set: Arc<[Action]>) -> Self {
        let rest = Remaining::whole(set.len());
        Self { set, rest }
    }

    pub(crate) fn enabled(&self) -> Enabled<'_> {
        Enabled::rest(&self.set, &self.rest)
    }

    pub(crate) fn rest(&self) -> &Remaining {
        &self.rest
    }

    pub(crate) fn set(&self) -> &[Action] {
        &self.set
    }

    pub(crate) fn unit(&self, place: usize) -> Option<&UnitId> {
        self.set[place].unit()
    }

    pub(crate) fn is_alive(&self, place: usize, alive: &mut dyn FnMut(&UnitId) -> bool) -> bool {
        self.unit(place).is_some_and(alive)
    }

    /// Removes the unit at this place: it was picked, or found dropped.
    pub(crate) fn take(&mut self, place: usize) {
        self.rest.remove(place);
    }
}

/// The next unit, by its place in the round, or a unit that was found dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    Unit(usize),
    Dropped(usize),
}
