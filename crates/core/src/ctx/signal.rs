//! Waiting for signals.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::job::Signal;
use crate::run::{Polled, Shared, SlotId, Value};
use crate::{Cancelled, Ctx, Name, ViolationKind};

impl Ctx {
    /// Waits for the next signal of this name. Signals are kept until they are taken, in the order in which they came,
    /// so one that came before the wait is taken at once. A name that has a handler cannot be waited for.
    #[track_caller]
    pub fn next_signal(&self, name: impl Into<Name>) -> SignalWait {
        let (name, site) = (name.into(), Location::caller());
        self.refuse_handled(&name, site);
        SignalWait { shared: self.shared.clone(), name, site, slot: None }
    }

    /// Takes the next signal of this name if one has come.
    #[track_caller]
    pub fn try_signal(&self, name: impl Into<Name>) -> Option<Signal> {
        let name = name.into();
        self.refuse_handled(&name, Location::caller());
        let mut state = self.shared.enter(Location::caller())?;
        let (came, signal) = state.take_signal(&name)?;
        state.consume(came);
        Some(*signal)
    }

    fn refuse_handled(&self, name: &Name, site: &'static Location<'static>) {
        if let Some(state) = self.shared.enter(site)
            && state.has_signal_handler(name)
        {
            let text =
                format!("signal {name:?} has a handler, so it cannot be waited for as well: take it in one place");
            self.shared.misuse(state, ViolationKind::Misuse(text));
        }
    }
}

/// A wait for a signal. A signal that came for a wait which was dropped goes to the next wait.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct SignalWait {
    shared: Arc<Shared>,
    name: Name,
    site: &'static Location<'static>,
    slot: Option<SlotId>,
}

impl Future for SignalWait {
    type Output = Result<Signal, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared.clone();
        let Some(mut state) = shared.enter_poll() else { return Poll::Ready(Err(Cancelled::evicted())) };
        let slot = match self.slot {
            Some(slot) => slot,
            None => {
                let slot = state.await_signal(&self.name, self.site);
                self.slot = Some(slot);
                slot
            }
        };
        let (polled, waker) = state.poll_slot(slot, cx.waker());
        drop(state);
        drop(waker);
        match polled {
            Polled::Pending => Poll::Pending,
            Polled::Ready(Value::Signal(signal)) => {
                self.slot = None;
                Poll::Ready(Ok(*signal))
            }
            Polled::Ready(other) => unreachable!("a wait for a signal was given {other:?}"),
            Polled::Cancelled(cancelled) => {
                self.slot = None;
                Poll::Ready(Err(cancelled))
            }
        }
    }
}

impl Drop for SignalWait {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.shared.leave(slot);
        }
    }
}
