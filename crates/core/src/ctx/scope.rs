//! Strict scopes: launched units that end before the scope does.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::branches::{Handover, UnitGroup};
use super::cancel::{CancelHandle, Cancellable};
use crate::lock::Lock;
use crate::{Ctx, Failure, Payload, Seg, ViolationKind};

impl Ctx {
    /// Plays a body that may launch units into its scope. The scope ends when the body and all its units have ended;
    /// the first failure among them cancels the others and is the scope's result.
    #[track_caller]
    pub fn scope<T, B, P>(&self, body: B) -> ScopePlay<P>
    where
        B: FnOnce(Scope) -> P,
        P: Future<Output = Result<T, Failure>>,
    {
        let site = Location::caller();
        let group = match self.shared.enter(site) {
            Some(mut state) => UnitGroup::new(self.shared.clone(), &mut state, site),
            None => UnitGroup::inert(self.shared.clone()),
        };
        let stop = self.new_cancel_scope(site);
        let group = Arc::new(Lock::new(group));
        let scope = Scope { ctx: self.clone(), group, failure: Handover::new(), stop: stop.clone() };
        let body = self.within(&stop, body(scope.clone()));
        ScopePlay { scope, body: Some(body), result: None }
    }
}

/// The handle with which a scope's body launches units.
#[derive(Clone)]
pub struct Scope {
    ctx: Ctx,
    group: Arc<Lock<UnitGroup>>,
    failure: Handover<Failure>,
    stop: CancelHandle,
}

impl Scope {
    /// Launches a unit that the scope waits for. Its failure cancels the scope.
    #[track_caller]
    pub fn launch(&self, future: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        // The group before the state, as in `ScopePlay`, which a foreign thread may drop at the same time.
        let mut group = self.group.lock();
        let Some(mut state) = self.ctx.shared.enter(Location::caller()) else { return };
        if !state.slots.contains_key(&group.slot) {
            drop(group);
            let text = "the scope has ended; launch into it before its body returns".to_owned();
            self.ctx.shared.misuse(state, ViolationKind::Misuse(text));
        }
        let scope = self.stop.scope();
        let inside = self.clone();
        let play = async move {
            if let Err(failure) = future.await {
                inside.fail(failure);
            }
            Ok(Payload::empty())
        };
        group.spawn(&mut state, Seg::L, scope, play);
    }

    fn fail(&self, failure: Failure) {
        let reason = failure.to_string();
        // The first failure is the scope's result; the failures that it causes are cancellations.
        match self.failure.take() {
            Some(first) => self.failure.put(first),
            None => self.failure.put(failure),
        }
        self.stop.cancel(reason);
    }
}

/// A scope that is being played: await it for its body's result.
#[must_use = "dropping a scope gives its units up; await it"]
pub struct ScopePlay<P: Future> {
    scope: Scope,
    body: Option<Cancellable<P>>,
    result: Option<Box<P::Output>>,
}

impl<T, P: Future<Output = Result<T, Failure>>> Future for ScopePlay<P> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(body) = &mut self.body {
            let result = ready!(Pin::new(body).poll(cx));
            self.body = None;
            if let Err(failure) = &result {
                self.scope.fail(failure.clone());
            }
            self.result = Some(Box::new(result));
        }
        let scope = self.scope.clone();
        let mut group = scope.group.lock();
        ready!(group.poll_done(cx)).map_err(Failure::from)?;
        match (self.scope.failure.take(), self.result.take()) {
            (Some(failure), _) => Poll::Ready(Err(failure)),
            (None, Some(result)) => Poll::Ready(*result),
            (None, None) => Poll::Pending,
        }
    }
}

impl<P: Future> Drop for ScopePlay<P> {
    fn drop(&mut self) {
        // Units hold the scope's handle, and with it the group: without this the group would outlive the scope.
        self.body = None;
        self.scope.group.lock().give_up();
    }
}
