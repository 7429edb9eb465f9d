//! Between rounds: the executor starts handlers for messages and evaluates conditions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Run;
use super::current_turn::{ThreadWork, TurnGuard};
use super::give_up::last_words;
use super::messages::Dispatch;
use super::shared::Stop;
use super::unit::HandlerMessage;
use crate::{ActivationError, UnitId};

impl Run {
    pub(super) fn between_rounds(&mut self, played: bool) -> Result<(), ActivationError> {
        {
            let mut state = self.shared.lock();
            if let Some(reason) = state.interrupt.take() {
                let site = state.site();
                state.fail(ActivationError::Interrupted { reason: reason.into(), unit: UnitId::root(), site });
            }
            if let Some(fault) = state.fault.take() {
                return Err(*fault);
            }
            if state.is_settled() {
                return Ok(());
            }
        }
        self.dispatch()?;
        if played {
            self.check_conditions()?;
        }
        let released = {
            let mut state = self.shared.lock();
            state.release_withheld();
            std::mem::take(&mut state.released)
        };
        self.wake(released);
        Ok(())
    }

    /// Starts a handler for each message that has one, in the order in which the messages came. Validators run here, by
    /// the executor and not in a unit, so that a rejected update leaves no trace.
    fn dispatch(&mut self) -> Result<(), ActivationError> {
        loop {
            let Some(dispatch) = self.shared.lock().next_dispatch() else { return Ok(()) };
            match dispatch {
                Dispatch::Signal(handler, came, signal) => {
                    let start = handler.start.clone();
                    let message = (came, HandlerMessage::Signal(signal.clone()));
                    let future = Box::pin(async move { start(*signal).await });
                    self.shared.lock().start_handler(handler.phase, None, handler.site, message, future);
                }
                Dispatch::Update(handler, came, update) => {
                    let validated = match &handler.validator {
                        Some(validate) if !update.accepted => self.compute(|| validate(&update))?,
                        _ => Ok(()),
                    };
                    let mut state = self.shared.lock();
                    match validated {
                        Err(failure) => state.reject(update.id, failure),
                        Ok(()) => {
                            let (start, input) = (handler.start.clone(), (*update).clone());
                            let future = Box::pin(async move { start(input).await });
                            state.accept(&handler, came, update, future);
                        }
                    }
                }
            }
        }
    }

    /// Runs a closure of the user for the executor. The closure may only compute.
    pub(super) fn compute<T>(&self, closure: impl FnOnce() -> T) -> Result<T, ActivationError> {
        let result = {
            let _hold = TurnGuard::mode(ThreadWork::Closure);
            catch_unwind(AssertUnwindSafe(closure))
        };
        let computed = result.map_err(|payload| match payload.is::<Stop>() {
            true => String::new(),
            false => last_words(payload),
        });
        let mut state = self.shared.lock();
        let site = state.site();
        match (state.fault.take(), computed) {
            (Some(fault), _) => Err(*fault),
            (None, Ok(value)) => Ok(value),
            (None, Err(message)) => Err(ActivationError::Panic { message, unit: UnitId::root(), site }),
        }
    }
}
