//! Rounds: one pass over the units runnable at its start, one step each.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::holder::{Hold, Mode};
use super::scope::EXECUTION;
use super::shared::{Stop, UnitWaker};
use super::unit::{Go, OnEnd, UnitKey};
use super::{Playing, Run, State};
use crate::{ActivationError, CommandKind, CompleteUpdate, Failure, Payload, UnitId, Warning};

impl Run {
    /// Plays rounds until no unit is runnable. Gives how many steps that took.
    pub(super) fn drain(&mut self) -> Result<u64, ActivationError> {
        let mut steps = 0;
        loop {
            self.between_rounds(steps > 0)?;
            let round = self.next_round();
            if round.is_empty() {
                self.at_quiescence();
                return Ok(steps);
            }
            steps += self.play_round(round)?;
        }
    }

    /// The units of the next round in the run's order, which follows from their ids alone.
    fn next_round(&mut self) -> Vec<UnitKey> {
        let mut state = self.shared.lock();
        let mut round = std::mem::take(&mut state.next_round);
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
        round
    }

    fn play_round(&mut self, round: Vec<UnitKey>) -> Result<u64, ActivationError> {
        if self.shared.lock().scheduler.is_deterministic() {
            let mut steps = 0;
            for key in round {
                steps += u64::from(self.step(key)?);
            }
            return Ok(steps);
        }
        self.play_round_by_policy(&round)
    }

    /// As the policy says: which of the round's units that are left goes next.
    fn play_round_by_policy(&mut self, round: &[UnitKey]) -> Result<u64, ActivationError> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let id_of = |key: &UnitKey| state.units.get(key).map(|unit| unit.id.clone());
        let ids: Vec<UnitId> = round.iter().filter_map(id_of).collect();
        let keys: BTreeMap<UnitId, UnitKey> = ids.iter().cloned().zip(round.iter().copied()).collect();
        state.scheduler.begin_round(ids)?;
        drop(guard);
        let mut steps = 0;
        loop {
            let mut guard = self.shared.lock();
            let State { scheduler, units, .. } = &mut *guard;
            let alive = |id: &UnitId| keys.get(id).and_then(|key| units.get(key)).is_some_and(|unit| !unit.dying);
            let next = scheduler.next_unit(&mut { alive })?;
            drop(guard);
            let Some(key) = next.and_then(|id| keys.get(&id).copied()) else { return Ok(steps) };
            steps += u64::from(self.step(key)?);
        }
    }

    /// One unit's go: it runs until it pauses, ends, fails or yields. Says whether it had one.
    fn step(&mut self, key: UnitKey) -> Result<bool, ActivationError> {
        let Some(playing) = self.futures.get_mut(&key) else { return Ok(false) };
        let mut state = self.shared.lock();
        if !state.is_alive(key) {
            return Ok(false);
        }
        state.running = Some(key);
        // The unit is still queued here, so that being woken by its own result gives it no second go.
        if let Some(waker) = state.reveal(key).filter(|waker| !waker.will_wake(&playing.waker)) {
            drop(state);
            waker.wake();
            state = self.shared.lock();
        }
        let unit = state.running_unit();
        unit.go = Go::Running;
        let scope = unit.scope;
        state.scope = scope;
        drop(state);
        let result = {
            let _hold = Hold::mode(Mode::Step);
            let mut context = Context::from_waker(&playing.waker);
            catch_unwind(AssertUnwindSafe(|| playing.future.as_mut().poll(&mut context)))
        };
        self.end_step(key, result)?;
        Ok(true)
    }

    fn end_step(
        &mut self,
        key: UnitKey,
        result: Result<Poll<Result<Payload, Failure>>, Box<dyn Any + Send>>,
    ) -> Result<(), ActivationError> {
        let mut state = self.shared.lock();
        if let Err(payload) = &result
            && !payload.is::<Stop>()
        {
            let (message, unit, site) = (panic_message(&**payload), state.running_id(), state.site());
            state.fail(ActivationError::Panic { message, unit, site });
        }
        if state.abandoned {
            return Err(ActivationError::Abandoned);
        }
        state.seal_all();
        if state.fault.is_none() {
            state.flush_cancels();
        }
        if let Some(fault) = state.fault.take() {
            return Err(*fault);
        }
        let again = {
            let unit = state.running_unit();
            let again = unit.go == Go::RunningAgain || !unit.reveals.is_empty();
            unit.go = Go::Idle;
            again
        };
        match result {
            Ok(Poll::Ready(result)) => {
                drop(state);
                self.end_unit(key, result);
            }
            _ if again => {
                state.make_runnable(key);
                drop(state);
            }
            _ => drop(state),
        }
        self.adopt_newborn();
        self.drop_aborted()?;
        self.shared.lock().running = None;
        Ok(())
    }

    fn end_unit(&mut self, key: UnitKey, result: Result<Payload, Failure>) {
        drop(self.futures.remove(&key));
        let mut state = self.shared.lock();
        let Some(mut unit) = state.units.remove(&key) else { return };
        state.release_all(std::mem::take(&mut unit.reveals));
        let wakers = match unit.on_end {
            OnEnd::Root => {
                drop(state);
                return self.end_root(result);
            }
            OnEnd::HandedOver => Vec::new(),
            OnEnd::Joined(slot) => {
                state.count_down(slot);
                Vec::new()
            }
            OnEnd::Launched(slot) => {
                let mut wakers = Vec::new();
                if let Err(failure) = result {
                    let reason = format!("launched unit {} failed: {failure}", unit.id);
                    state.launched_failure.get_or_insert(failure);
                    let at = state.next_ordinal();
                    wakers = state.cancel_scope(EXECUTION, at, reason);
                }
                state.count_down(slot);
                wakers
            }
            OnEnd::Handler { update, phase, site } => {
                match (update, result) {
                    (Some(update), result) => {
                        state.answered(&update);
                        let answer = CompleteUpdate { update, outcome: result.into() };
                        state.emit_for(unit.id.clone(), CommandKind::CompleteUpdate(Box::new(answer)), site);
                    }
                    (None, Err(failure)) => {
                        state.warnings.push(Warning::SignalHandlerFailed { unit: unit.id.clone(), failure });
                    }
                    (None, Ok(_)) => {}
                }
                state.leave_phase(phase);
                Vec::new()
            }
        };
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes over the futures of units that were started since.
    pub(super) fn adopt_newborn(&mut self) {
        let newborn = std::mem::take(&mut self.shared.lock().newborn);
        for (unit, future) in newborn {
            let waker = Waker::from(Arc::new(UnitWaker { shared: self.shared.clone(), unit }));
            self.futures.insert(unit, Playing { future, waker });
        }
    }

    /// Drops the futures of units that were given up, in the run's order. What they had open is cancelled.
    fn drop_aborted(&mut self) -> Result<(), ActivationError> {
        loop {
            let key = {
                let mut state = self.shared.lock();
                if state.aborted.is_empty() {
                    return Ok(());
                }
                let first = state.aborted.iter().enumerate().min_by_key(|(_, key)| state.units.get(key).map(|u| &u.id));
                let place = first.map_or(0, |(place, _)| place);
                let key = state.aborted.swap_remove(place);
                state.running = Some(key);
                key
            };
            let playing = self.futures.remove(&key);
            let panicked = {
                let _hold = Hold::mode(Mode::Step);
                self.drop_quietly(playing)
            };
            let mut state = self.shared.lock();
            if let Some(message) = panicked {
                let (unit, site) = (state.running_id(), state.site());
                state.fail(ActivationError::Panic { message, unit, site });
            }
            state.seal_all();
            if state.fault.is_none() {
                state.flush_cancels();
            }
            if let Some(fault) = state.fault.take() {
                return Err(*fault);
            }
            if let Some(unit) = state.units.remove(&key) {
                state.release_all(unit.reveals);
            }
            state.running = None;
            drop(state);
            self.adopt_newborn();
        }
    }
}

/// What a panic said, as far as it said anything in words.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
