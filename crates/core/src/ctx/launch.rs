//! `launch`: units that run concurrently with the workflow function, and whose failure fails the run.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::branches::Handover;
use crate::run::{EXECUTION, OnEnd, Shared, SlotId, What};
use crate::{Cancelled, Ctx, Failure, Payload, Seg};

impl Ctx {
    /// Launches a unit that runs concurrently with this one. If it fails, the workflow function is cancelled and the
    /// run fails with its failure. If the workflow function returns first, the unit is dropped: await it, or use
    /// [`Ctx::scope`].
    #[track_caller]
    pub fn launch<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Launched<T> {
        let site = Location::caller();
        let output = Handover::new();
        let Some(mut state) = self.shared.enter(site) else {
            return Launched { shared: self.shared.clone(), slot: SlotId::Never, output };
        };
        let slot = state.open_wait(What::Units, site);
        if let Some(opened) = state.slots.get_mut(&slot) {
            opened.count = 1;
        }
        let id = state.next_child(Seg::L);
        let scope = state.launch_scope();
        let handover = output.clone();
        let play = async move {
            handover.put(future.await?);
            Ok(Payload::empty())
        };
        state.spawn(id, OnEnd::Launched(slot), scope, Box::pin(play), false);
        drop(state);
        Launched { shared: self.shared.clone(), slot, output }
    }
}

/// A launched unit: await it for its value. Dropping this handle leaves the unit running.
pub struct Launched<T> {
    shared: Arc<Shared>,
    slot: SlotId,
    output: Handover<T>,
}

impl<T> Future for Launched<T> {
    type Output = Result<T, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut state) = self.shared.enter_poll() else { return Poll::Ready(Err(Cancelled::evicted())) };
        let (polled, waker) = state.poll_slot(self.slot, cx.waker());
        let failed = state.cancellation(EXECUTION);
        drop(state);
        drop(waker);
        ready!(polled.into_poll())?;
        // A unit that failed leaves no value, only the cancellation it caused, and that may not reach this wait.
        let reason = || failed.map(|(_, reason)| reason).unwrap_or_default();
        Poll::Ready(self.output.take().ok_or_else(|| Cancelled { reason: reason() }))
    }
}

impl<T> Drop for Launched<T> {
    fn drop(&mut self) {
        self.shared.leave(self.slot);
    }
}
