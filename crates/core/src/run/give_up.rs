//! Dropping user code: closures and futures that are over are dropped outside the lock, and open operations of aborted
//! units are cancelled.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use super::Run;
use super::current_turn::{ThreadWork, TurnGuard};
use crate::ActivationError;
use crate::panic_place::{panic_place, words};

impl Run {
    /// Drops items of the user that are not needed any more. Their destructors are user code, so they run outside the
    /// lock.
    pub(super) fn drop_spent(&mut self) {
        let spent = self.shared.lock().take_spent();
        if spent.is_empty() {
            return;
        }
        let _hold = TurnGuard::mode(ThreadWork::Teardown);
        for message in spent.into_iter().filter_map(drop_quietly) {
            self.panicked(message);
        }
    }

    /// Wakes these wakers. They may be the user's own, so they may panic.
    pub(super) fn wake(&self, wakers: impl IntoIterator<Item = Waker>) {
        for waker in wakers {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                self.panicked(last_words(payload));
            }
        }
    }

    fn panicked(&self, message: String) {
        let mut state = self.shared.lock();
        let (unit, site) = (state.running_id(), state.site());
        state.fail(ActivationError::Panic { message, unit, site });
    }

    /// Drops the futures of aborted units, in the order of their ids. Their open operations are cancelled.
    pub(super) fn drop_aborted(&mut self) -> Result<(), ActivationError> {
        loop {
            let key = {
                let mut state = self.shared.lock();
                let Some((_, key)) = state.aborted.pop_first() else { return Ok(()) };
                state.running = Some(key);
                key
            };
            let future = self.shared.lock().units.get_mut(&key).and_then(|unit| unit.future.take());
            let panicked = {
                let _hold = TurnGuard::mode(ThreadWork::Step);
                drop_quietly(future)
            };
            if let Some(message) = panicked {
                self.panicked(message);
            }
            let mut state = self.shared.lock();
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

/// Returns a panic's message, if it is text, and its place, if that is known. The payload is dropped here, which may
/// panic once more.
pub(super) fn last_words(payload: Box<dyn Any + Send>) -> String {
    let text = words(&*payload).unwrap_or_else(|| "a panic without a message".to_owned());
    let place = panic_place(&*payload).map_or_else(String::new, |place| format!(", at {place}"));
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    text + &place
}

/// Drops a value that may run destructors of user code. Returns the message of a destructor that panicked.
pub(super) fn drop_quietly<T>(what: T) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| drop(what))).err().map(last_words)
}
