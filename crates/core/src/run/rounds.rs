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
use crate::{
    ActivationError, CommandKind, CompleteUpdate, Failure, Payload, PolicyError, UnitId, ViolationKind, Warning,
};

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
            let next = asked(|| scheduler.next_unit(&mut { alive }))?;
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
            // It may be the user's own, so it may panic.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                return self.end_step(key, Err(payload)).map(|()| true);
            }
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
        self.drop_spent();
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
        if result.is_err() && state.fault.is_none() {
            // Stopped by another run, whose ctx it used.
            state.violate(ViolationKind::ForeignCall, None);
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
        drop(state);
        // What the unit gave up in this step is cancelled before its own end is seen.
        self.adopt_newborn();
        self.drop_aborted()?;
        match result {
            Ok(Poll::Ready(result)) => self.end_unit(key, result),
            _ if again => self.shared.lock().make_runnable(key),
            _ => {}
        }
        self.adopt_newborn();
        self.drop_aborted()?;
        self.shared.lock().running = None;
        Ok(())
    }

    fn end_unit(&mut self, key: UnitKey, result: Result<Payload, Failure>) {
        drop(self.futures.remove(&key));
        let mut state = self.shared.lock();
        let Some(unit) = state.units.remove(&key) else { return };
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
                if let Err(failure) = result
                    && !(failure.is_cancelled() && state.run_cancelled())
                {
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
        self.wake(wakers);
    }

    /// Drops bodies that nobody will run. What they hold is the user's, so it is dropped outside the lock.
    fn drop_spent(&mut self) {
        let spent = std::mem::take(&mut self.shared.lock().spent);
        if spent.is_empty() {
            return;
        }
        let _hold = Hold::mode(Mode::Teardown);
        if let Some(message) = self.drop_quietly(spent) {
            self.panicked(message);
        }
    }

    /// Wakes them. They may be the user's own, so they may panic.
    pub(super) fn wake(&self, wakers: impl IntoIterator<Item = Waker>) {
        for waker in wakers {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                self.panicked(panic_message(&*payload));
            }
        }
    }

    fn panicked(&self, message: String) {
        let mut state = self.shared.lock();
        let (unit, site) = (state.running_id(), state.site());
        state.fail(ActivationError::Panic { message, unit, site });
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
            state.units.remove(&key);
            state.running = None;
            drop(state);
            self.adopt_newborn();
        }
    }
}

/// Asks the scheduler, whose policy may be the user's own.
pub(super) fn asked<T>(ask: impl FnOnce() -> Result<T, PolicyError>) -> Result<T, PolicyError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|payload| {
        let reason = format!("it panicked: {}", panic_message(&*payload));
        Err(PolicyError::Refused { reason })
    })
}

/// What a panic said, as far as it said anything in words.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
