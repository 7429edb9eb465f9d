//! Rounds: one pass over the units runnable at its start, one step each.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::holder::{Hold, Mode};
use super::scope::EXECUTION;
use super::shared::{Stop, UnitWaker};
use super::unit::{Go, HandlerEnd, OnEnd, UnitFuture, UnitKey};
use super::{Run, State, drop_quietly};
use crate::{
    ActivationError, CommandKind, CompleteUpdate, Failure, Payload, PolicyError, UnitId, ViolationKind, Warning,
};

/// How a step ended.
enum StepEnd {
    /// It waits, or yielded.
    Paused(UnitFuture, Waker),
    /// The unit is done.
    Done(Result<Payload, Failure>),
    /// The activation failed within it.
    Stopped,
    /// User code panicked, and said this.
    Panicked(String),
}

impl Run {
    /// Plays rounds until no unit is runnable. Gives how many steps that took.
    pub(super) fn drain(&mut self) -> Result<u64, ActivationError> {
        let mut steps = 0;
        loop {
            self.between_rounds(steps > 0)?;
            if !self.next_round() {
                self.at_quiescence();
                return Ok(steps);
            }
            steps += self.play_round()?;
        }
    }

    /// Lines up the units of the next round in the run's order, which follows from their ids alone. Says whether there
    /// are any.
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
        let mut state = self.shared.lock();
        let Some(unit) = state.units.get_mut(&key).filter(|unit| !unit.dying) else { return Ok(false) };
        let Some(mut future) = unit.future.take() else { return Ok(false) };
        let waker = unit.waker.take();
        let waker = waker.unwrap_or_else(|| Arc::new(UnitWaker { shared: self.shared.clone(), unit: key }).into());
        state.running = Some(key);
        // The unit is still queued here, so that being woken by its own result gives it no second go.
        if let Some(asked) = state.reveal(key).filter(|asked| !asked.will_wake(&waker)) {
            drop(state);
            self.wake([asked]);
            state = self.shared.lock();
        }
        let unit = state.running_unit();
        unit.go = Go::Running;
        let scope = unit.scope;
        state.scope = scope;
        drop(state);
        let polled = {
            let _hold = Hold::mode(Mode::Step);
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))))
        };
        match polled {
            Ok(Poll::Pending) => self.end_step(key, StepEnd::Paused(future, waker))?,
            Ok(Poll::Ready(result)) => {
                let _hold = Hold::mode(Mode::Step);
                let end = drop_quietly(future).map_or(StepEnd::Done(result), StepEnd::Panicked);
                self.end_step(key, end)?;
            }
            Err(payload) => {
                let _hold = Hold::mode(Mode::Teardown);
                drop_quietly(future);
                let stopped = payload.is::<Stop>();
                self.end_step(
                    key,
                    if stopped { StepEnd::Stopped } else { StepEnd::Panicked(panic_message(&*payload)) },
                )?;
            }
        }
        Ok(true)
    }

    fn end_step(&mut self, key: UnitKey, end: StepEnd) -> Result<(), ActivationError> {
        let _hold = Hold::mode(Mode::Kernel);
        self.drop_spent();
        let mut state = self.shared.lock();
        let result = match end {
            StepEnd::Paused(future, waker) => {
                if let Some(unit) = state.units.get_mut(&key) {
                    (unit.future, unit.waker) = (Some(future), Some(waker));
                }
                None
            }
            StepEnd::Done(result) => Some(result),
            StepEnd::Panicked(message) => {
                let (unit, site) = (state.running_id(), state.site());
                state.fail(ActivationError::Panic { message, unit, site });
                None
            }
            StepEnd::Stopped => {
                // Without a fault of this run's own, it was stopped for meddling with another.
                if state.fault.is_none() {
                    state.violate(ViolationKind::ForeignCall, None);
                }
                None
            }
        };
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
        let unit = state.running_unit();
        let again = unit.go == Go::RunningAgain || !unit.reveals.is_empty();
        unit.go = Go::Idle;
        if !state.aborted.is_empty() {
            // What the unit gave up in this step is cancelled before its own end is seen.
            drop(state);
            self.drop_aborted()?;
            state = self.shared.lock();
        }
        if let Some(result) = result {
            drop(state);
            self.end_unit(key, result);
            self.drop_aborted()?;
            state = self.shared.lock();
        } else if again {
            state.make_runnable(key);
        }
        state.running = None;
        Ok(())
    }

    fn end_unit(&mut self, key: UnitKey, result: Result<Payload, Failure>) {
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
                if let Err(failure) = result
                    && !(failure.is_cancelled() && state.run_cancelled())
                {
                    let reason = format!("launched unit {} failed: {failure}", unit.id);
                    match &mut state.ending {
                        // The workflow function has returned, and the run is still open for its handlers: it fails now.
                        Some(ending) => ending.kind = CommandKind::Fail { failure: Box::new(failure) },
                        None => drop(state.launched_failure.get_or_insert(Box::new(failure))),
                    }
                    let at = state.next_ordinal();
                    wakers = state.cancel_scope(EXECUTION, at, reason);
                }
                state.count_down(slot);
                wakers
            }
            OnEnd::Handler(end) => {
                let HandlerEnd { update, phase, site } = *end;
                match (update, result) {
                    (Some(update), result) => {
                        state.answered(&update);
                        let answer = CompleteUpdate { update, outcome: result.into() };
                        state.emit_for(unit.id.clone(), CommandKind::CompleteUpdate(Box::new(answer)), site);
                    }
                    (None, Err(failure)) => {
                        state.warn(Warning::SignalHandlerFailed { unit: unit.id.clone(), failure });
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
        let spent = self.shared.lock().take_spent();
        if spent.is_empty() {
            return;
        }
        let _hold = Hold::mode(Mode::Teardown);
        if let Some(message) = drop_quietly(spent) {
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
            let future = self.shared.lock().units.get_mut(&key).and_then(|unit| unit.future.take());
            let panicked = {
                let _hold = Hold::mode(Mode::Step);
                drop_quietly(future)
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
