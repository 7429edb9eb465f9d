//! The scheduler of a run. Nearly every run is deterministic and needs none of a scheduler's memory, so it has none.

use super::{PolicyError, Scheduler, TurnChoices};
use crate::UnitId;

/// The choice of what happens next in one run: the first in the run's order, or the pick of its scheduler.
pub(crate) struct RunScheduler(Option<Box<Scheduler>>);

impl RunScheduler {
    pub(crate) const fn deterministic() -> Self {
        Self(None)
    }

    pub(crate) fn asking(scheduler: Scheduler) -> Self {
        Self(Some(Box::new(scheduler)))
    }

    /// Returns whether every pick is the first in the run's order and nothing is logged.
    pub(crate) const fn is_deterministic(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn begin_turn(&mut self, turn: u64, recorded: Option<TurnChoices>) {
        if let Some(scheduler) = &mut self.0 {
            scheduler.begin_turn(turn, recorded);
        }
    }

    pub(crate) fn begin_round(&mut self, units: Vec<UnitId>) -> Result<(), PolicyError> {
        self.0.as_mut().map_or(Ok(()), |scheduler| scheduler.begin_round(units))
    }

    pub(crate) fn next_unit(&mut self, alive: &mut dyn FnMut(&UnitId) -> bool) -> Result<Option<UnitId>, PolicyError> {
        self.0.as_mut().map_or(Ok(None), |scheduler| scheduler.next_unit(alive))
    }

    pub(crate) fn pick_branch(&mut self, n: u32) -> Result<u32, PolicyError> {
        match &mut self.0 {
            Some(scheduler) => scheduler.pick_branch(n),
            None => Scheduler::deterministic().pick_branch(n),
        }
    }

    pub(crate) fn end_turn(&mut self) -> Result<Option<TurnChoices>, PolicyError> {
        self.0.as_mut().map_or(Ok(None), |scheduler| scheduler.end_turn())
    }
}
