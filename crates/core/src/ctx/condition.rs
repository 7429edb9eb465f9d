//! Waiting for a condition over the workflow's own state.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::run::{Condition, Polled, Shared, SlotId, ThreadWork, TurnGuard, What};
use crate::{Cancelled, Ctx};

impl Ctx {
    /// Waits until the condition holds. The condition only computes, and does not call the ctx.
    ///
    /// It is evaluated now, and again after every round in which a [`crate::StateCell`] that it read was changed, so many
    /// units can wait for cells of their own at little cost. A condition that reads no cell may depend on anything that the
    /// workflow shares, and is evaluated after every round in which a unit ran. One that reads cells must depend on nothing
    /// else that changes: where runs are played twice, as in tests, breaking this fails the activation.
    #[track_caller]
    pub fn wait_until(&self, condition: impl Fn() -> bool + Send + Sync + 'static) -> WaitUntil {
        self.wait_until_at(condition, Location::caller())
    }

    pub(crate) fn wait_until_at(
        &self,
        condition: impl Fn() -> bool + Send + Sync + 'static,
        site: &'static Location<'static>,
    ) -> WaitUntil {
        WaitUntil { shared: self.shared.clone(), condition: Arc::new(condition), site, slot: None }
    }
}

/// A wait for a condition.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct WaitUntil {
    shared: Arc<Shared>,
    condition: Condition,
    site: &'static Location<'static>,
    slot: Option<SlotId>,
}

impl WaitUntil {
    /// Opens the wait. If the condition already holds, the wait ends at once.
    fn open(&mut self) -> Option<SlotId> {
        self.shared.enter_poll()?.begin_reads();
        let holds = {
            let _hold = TurnGuard::mode(ThreadWork::Closure);
            (self.condition)()
        };
        let mut state = self.shared.enter_poll()?;
        let cells = state.take_reads();
        let slot = state.open_wait(What::Condition, self.site);
        if holds {
            state.end_at_once(slot);
        } else {
            state.await_condition(slot, self.condition.clone(), cells);
        }
        self.slot = Some(slot);
        Some(slot)
    }
}

impl Future for WaitUntil {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared.clone();
        let Some(slot) = self.slot.or_else(|| self.open()) else { return Poll::Ready(Err(Cancelled::evicted())) };
        let Some(mut state) = shared.enter_poll() else { return Poll::Ready(Err(Cancelled::evicted())) };
        let (polled, waker) = state.poll_slot(slot, cx.waker());
        drop(state);
        drop(waker);
        if !matches!(polled, Polled::Pending) {
            self.slot = None;
        }
        polled.into_poll().map(|result| result.map(drop))
    }
}

impl Drop for WaitUntil {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.shared.leave(slot);
        }
    }
}
