//! Rounds: one pass over the units runnable at its start, one step each.

use std::collections::BTreeMap;

use super::Run;
use super::unit::UnitKey;
use crate::{ActivationError, UnitId};

impl Run {
    /// Plays rounds until no unit is runnable. Returns how many steps that took.
    pub(super) fn drain(&mut self) -> Result<u64, ActivationError> {
        let mut steps = 0;
        loop {
            self.between_rounds(steps > 0)?;
            if !self.next_round() {
                if steps > 0 && self.check_unchanged_conditions()? {
                    continue;
                }
                self.at_quiescence();
                return Ok(steps);
            }
            steps += self.play_round()?;
        }
    }

    /// Collects the units of the next round in the run's order, which follows from their ids alone. Returns whether
    /// there are any.
    fn next_round(&mut self) -> bool {
        let mut state = self.shared.lock();
        let round = &mut self.round;
        round.clear();
        std::mem::swap(round, &mut state.next_round);
        round.retain(|key| state.is_alive(*key));
        if !round.is_empty() {
            state.round += 1;
        }
        if round.len() > 1 {
            let order = self.order;
            round.sort_by_cached_key(|key| {
                let id = state.units.get(key).map_or_else(UnitId::root, |unit| unit.id.clone());
                (order.rank(&id), id)
            });
        }
        !round.is_empty()
    }

    fn play_round(&mut self) -> Result<u64, ActivationError> {
        if !self.shared.lock().scheduler.is_deterministic() {
            let round = std::mem::take(&mut self.round);
            return self.play_round_by_policy(&round);
        }
        let mut steps = 0;
        for place in 0..self.round.len() {
            steps += u64::from(self.step(self.round[place])?);
        }
        Ok(steps)
    }

    /// Plays a round in the order in which the policy picks its units.
    fn play_round_by_policy(&mut self, round: &[UnitKey]) -> Result<u64, ActivationError> {
        let ids: Vec<UnitId> = {
            let state = self.shared.lock();
            round.iter().filter_map(|key| Some(state.units.get(key)?.id.clone())).collect()
        };
        let keys: BTreeMap<UnitId, UnitKey> = ids.iter().cloned().zip(round.iter().copied()).collect();
        self.shared.ask(|scheduler| scheduler.begin_round(ids))?;
        let mut steps = 0;
        loop {
            let alive = |id: &UnitId| keys.get(id).is_some_and(|key| self.shared.lock().is_alive(*key));
            let next = self.shared.ask(|scheduler| scheduler.next_unit(&mut { alive }))?;
            let Some(key) = next.and_then(|id| keys.get(&id).copied()) else { return Ok(steps) };
            steps += u64::from(self.step(key)?);
        }
    }
}
