//! Steps: a unit runs once within a round, and what follows from the step's end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Run;
use super::cancel_scope::EXECUTION;
use super::current_turn::{ThreadWork, TurnGuard};
use super::give_up::{drop_quietly, last_words};
use super::shared::{Stop, UnitWaker};
use super::unit::{Go, HandlerEnd, OnEnd, UnitFuture, UnitKey};
use crate::{ActivationError, CommandKind, CompleteUpdate, Failure, Payload, ViolationKind, Warning};

/// The end of a step.
enum StepEnd {
    /// The unit waits, or yielded.
    Paused(UnitFuture, Waker),
    /// The unit is done.
    Done(Result<Payload, Failure>),
    /// The activation failed within it.
    Stopped,
    /// User code panicked, with this message.
    Panicked(String),
}

impl Run {
    /// Plays one step of a unit: it runs until it pauses, ends, fails or yields. Returns whether it had a step.
    pub(super) fn step(&mut self, key: UnitKey) -> Result<bool, ActivationError> {
        let mut state = self.shared.lock();
        let Some(unit) = state.units.get_mut(&key).filter(|unit| !unit.dying) else { return Ok(false) };
        let Some(mut future) = unit.future.take() else { return Ok(false) };
        let waker = unit.waker.take();
        let waker = waker.unwrap_or_else(|| Arc::new(UnitWaker { shared: self.shared.clone(), unit: key }).into());
        state.running = Some(key);
        // The unit is still queued here, so that being woken by its own result gives it no second step.
        if let Some(asked) = state.reveal(key).filter(|asked| !asked.will_wake(&waker)) {
            drop(state);
            self.wake([asked]);
            state = self.shared.lock();
        }
        let unit = state.running_unit();
        unit.go = Go::Running;
        let scope = unit.scope;
        state.begin_step_of(key);
        state.scope = scope;
        state.consumed = None;
        drop(state);
        let polled = {
            let _hold = TurnGuard::mode(ThreadWork::Step);
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))))
        };
        match polled {
            Ok(Poll::Pending) => self.end_step(key, StepEnd::Paused(future, waker))?,
            Ok(Poll::Ready(result)) => {
                let _hold = TurnGuard::mode(ThreadWork::Step);
                let end = drop_quietly(future).map_or(StepEnd::Done(result), StepEnd::Panicked);
                self.end_step(key, end)?;
            }
            Err(payload) => {
                let _hold = TurnGuard::mode(ThreadWork::Teardown);
                drop_quietly(future);
                let end = if payload.is::<Stop>() { StepEnd::Stopped } else { StepEnd::Panicked(last_words(payload)) };
                self.end_step(key, end)?;
            }
        }
        Ok(true)
    }

    fn end_step(&mut self, key: UnitKey, end: StepEnd) -> Result<(), ActivationError> {
        let _hold = TurnGuard::mode(ThreadWork::Kernel);
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
                // If this run has no fault of its own, the step was stopped because it used another run.
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
        let more = state.has_reveals(key) && !state.withhold(key);
        let unit = state.running_unit();
        let again = unit.go == Go::RunningAgain || more;
        unit.go = Go::Idle;
        if !state.aborted.is_empty() {
            // The operations of units that this unit aborted in this step are cancelled before its own end is handled.
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
                let HandlerEnd { update, phase, site, .. } = *end;
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
}
