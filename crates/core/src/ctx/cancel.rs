//! Cancellation scopes and shields.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::run::{ScopeId, Shared};
use crate::{Cancelled, Ctx};

impl Ctx {
    /// Returns the cancellation of the scope that the running unit is in, if it was cancelled.
    #[track_caller]
    pub fn cancellation(&self) -> Option<Cancelled> {
        let state = self.shared.enter(Location::caller())?;
        let (_, reason) = state.cancellation(state.scope)?;
        Some(Cancelled { reason })
    }

    /// Returns a future that can be cancelled on its own, and the handle that cancels it.
    #[track_caller]
    pub fn cancellable<F: Future>(&self, future: F) -> (Cancellable<F>, CancelHandle) {
        let handle = self.new_cancel_scope(Location::caller());
        (self.within(&handle, future), handle)
    }

    /// Plays a future that no cancellation reaches: for cleaning up.
    #[track_caller]
    pub fn shield<F: Future>(&self, future: F) -> Shield<F> {
        let scope = self.shared.enter(Location::caller()).map(|mut state| state.open_scope(true));
        let scope = Arc::new(OwnedScope { shared: self.shared.clone(), id: scope });
        Shield(Scoped { scope, future: Box::pin(future) })
    }

    pub(super) fn new_cancel_scope(&self, site: &'static Location<'static>) -> CancelHandle {
        let id = self.shared.enter(site).map(|mut state| state.open_scope(false));
        CancelHandle { scope: Arc::new(OwnedScope { shared: self.shared.clone(), id }) }
    }

    pub(super) fn within<F: Future>(&self, handle: &CancelHandle, future: F) -> Cancellable<F> {
        Cancellable(Scoped { scope: handle.scope.clone(), future: Box::pin(future) })
    }
}

/// A scope that is closed when no handle can cancel it and no future waits in it any more.
struct OwnedScope {
    shared: Arc<Shared>,
    id: Option<ScopeId>,
}

impl Drop for OwnedScope {
    fn drop(&mut self) {
        if let (Some(id), Some(mut state)) = (self.id, self.shared.enter_drop()) {
            state.close_scope(id);
        }
    }
}

/// A handle that cancels the future it was created with. Cheap to clone.
#[derive(Clone)]
pub struct CancelHandle {
    scope: Arc<OwnedScope>,
}

impl CancelHandle {
    pub(super) fn scope(&self) -> ScopeId {
        self.scope.id.unwrap_or_default()
    }

    /// Cancels the future: every wait in it that is not shielded fails, now and from now on.
    #[track_caller]
    pub fn cancel(&self, reason: impl Into<String>) {
        let Some(id) = self.scope.id else { return };
        let reason = reason.into();
        let Some(mut state) = self.scope.shared.enter(Location::caller()) else { return };
        let at = state.next_ordinal();
        let wakers = state.cancel_scope(id, at, reason);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A future whose waits belong to a scope of their own.
struct Scoped<F> {
    scope: Arc<OwnedScope>,
    future: Pin<Box<F>>,
}

impl<F: Future> Scoped<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let entered = match (self.scope.id, self.scope.shared.enter_poll()) {
            (Some(id), Some(mut state)) => Some(std::mem::replace(&mut state.scope, id)),
            _ => None,
        };
        let _within = entered.map(|outer| Within { shared: &self.scope.shared, outer });
        self.future.as_mut().poll(cx)
    }
}

/// A guard that restores the outer scope when it is dropped, even when the code within unwinds.
struct Within<'s> {
    shared: &'s Shared,
    outer: ScopeId,
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        self.shared.lock().scope = self.outer;
    }
}

/// A future that can be cancelled on its own.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cancellable<F>(Scoped<F>);

impl<F: Future> Future for Cancellable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.poll(cx)
    }
}

/// A future that no cancellation reaches.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Shield<F>(Scoped<F>);

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.poll(cx)
    }
}
