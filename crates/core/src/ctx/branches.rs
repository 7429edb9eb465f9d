//! Units that a future waits for: how they hand over their outputs, and how they are aborted.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::lock::Lock;
use crate::options::CancelType;
use crate::run::{OnEnd, Polled, ScopeId, Shared, SlotId, State, UnitKey, What};
use crate::{Cancelled, Failure, Payload, Seg};

/// The place where a unit leaves its value for the future that waits for it.
pub(crate) struct Handover<T>(Arc<Lock<Option<T>>>);

impl<T> Handover<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Lock::new(None)))
    }

    pub(crate) fn put(&self, value: T) {
        *self.0.lock() = Some(value);
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().take()
    }
}

impl<T> Clone for Handover<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Units, and a slot that is done when all of them have ended. A cancellation does not end this wait: it cancels the
/// units themselves, which clean up and end.
pub(crate) struct UnitGroup {
    pub(crate) shared: Arc<Shared>,
    pub(crate) slot: SlotId,
    units: Vec<UnitKey>,
}

impl UnitGroup {
    pub(crate) fn new(shared: Arc<Shared>, state: &mut State, site: &'static Location<'static>) -> Self {
        let slot = state.open_wait(What::Units, site);
        if let Some(opened) = state.slots.get_mut(&slot) {
            opened.cancel = CancelType::WaitCompleted;
        }
        Self { shared, slot, units: Vec::new() }
    }

    /// Creates a group without units, for a run that is being torn down.
    pub(crate) fn inert(shared: Arc<Shared>) -> Self {
        Self { shared, slot: SlotId::Never, units: Vec::new() }
    }

    /// Starts a child of the running unit and counts it here.
    pub(crate) fn spawn(
        &mut self,
        state: &mut State,
        seg: fn(u32) -> Seg,
        scope: ScopeId,
        future: impl Future<Output = Result<Payload, Failure>> + Send + 'static,
    ) {
        let id = state.next_child(seg);
        if let Some(slot) = state.slots.get_mut(&self.slot) {
            slot.count += 1;
            // All units counted so far may have ended before this one starts.
            slot.arrived = None;
            slot.revealed = false;
            if self.units.len() > 2 * slot.count + 16 {
                self.units.retain(|unit| state.is_alive(*unit));
            }
        }
        self.units.push(state.spawn(id, OnEnd::Joined(self.slot), scope, Box::pin(future), false));
    }

    /// Creates a group for a slot whose units are counted elsewhere.
    pub(crate) fn of_slot(shared: Arc<Shared>, slot: SlotId) -> Self {
        Self { shared, slot, units: Vec::new() }
    }

    /// Aborts all units that have not ended.
    pub(crate) fn give_up(&mut self) {
        let (units, slot) = (std::mem::take(&mut self.units), std::mem::replace(&mut self.slot, SlotId::Never));
        if let Some(mut state) = self.shared.enter_drop() {
            units.into_iter().for_each(|unit| state.abort(unit));
        }
        self.shared.leave(slot);
    }

    /// Polls the slot; it is ready when all units have ended.
    pub(crate) fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Cancelled>> {
        let Some(mut state) = self.shared.enter_poll() else { return Poll::Ready(Err(Cancelled::evicted())) };
        if state.slots.get(&self.slot).is_some_and(|slot| slot.count == 0 && slot.arrived.is_none()) {
            state.end_at_once(self.slot);
        }
        let (polled, waker) = state.poll_slot(self.slot, cx.waker());
        drop(state);
        drop(waker);
        if !matches!(polled, Polled::Pending) {
            self.units.clear();
        }
        polled.into_poll().map(|result| result.map(drop))
    }
}

impl Drop for UnitGroup {
    fn drop(&mut self) {
        self.give_up();
    }
}
