//! Handlers that live as long as the run: of signals, updates and queries.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use crate::activation::Query;
use crate::job::{Signal, Update};
use crate::run::{SignalHandler, UpdateHandler};
use crate::{Ctx, Failure, Name, Payload, ViolationKind};

impl Ctx {
    /// Handles every signal of this name, including those that came before. Each signal has a unit of its own, which
    /// runs concurrently with the others; its failure ends that unit alone. After the workflow function has returned,
    /// handlers go on until none of them is runnable.
    #[track_caller]
    pub fn on_signal<F, P>(&self, name: impl Into<Name>, handler: F)
    where
        F: Fn(Signal) -> P + Send + Sync + 'static,
        P: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let (name, site) = (name.into(), Location::caller());
        let handler = Arc::new(handler);
        // Kept here, so that a handler which is refused is not dropped under the lock.
        let start: crate::run::SignalFn = Arc::new(move |signal| {
            let handler = handler.clone();
            Box::pin(async move { handler(signal).await.map(|()| Payload::empty()) }) as _
        });
        let Some(mut state) = self.shared.enter(site) else { return };
        if let Err(text) = state.handle_signals(&name, SignalHandler { start: start.clone(), phase: None, site }) {
            self.shared.misuse(state, ViolationKind::Misuse(text));
        }
    }

    /// Handles every update of this name. The validator decides, before anything is recorded, whether the update is
    /// accepted; it only reads. The handler of an accepted update is a unit of its own; its result is the answer to the
    /// sender.
    #[track_caller]
    pub fn on_update<V, F, P>(&self, name: impl Into<Name>, validator: V, handler: F)
    where
        V: Fn(&Update) -> Result<(), Failure> + Send + Sync + 'static,
        F: Fn(Update) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let (name, site) = (name.into(), Location::caller());
        // Kept here, so that a handler which is refused is not dropped under the lock.
        let start: crate::run::UpdateFn = Arc::new(move |update| Box::pin(handler(update)) as _);
        let validator: crate::run::ValidatorFn = Arc::new(validator);
        let handler = UpdateHandler { validator: Some(validator.clone()), start: start.clone(), phase: None, site };
        let Some(mut state) = self.shared.enter(site) else { return };
        if let Err(text) = state.handle_updates(&name, handler) {
            self.shared.misuse(state, ViolationKind::Misuse(text));
        }
    }

    /// Answers queries of this name from the workflow's state, which the handler only reads. A later handler of the
    /// same name replaces it.
    #[track_caller]
    pub fn on_query(
        &self,
        name: impl Into<Name>,
        handler: impl Fn(&Query) -> Result<Payload, Failure> + Send + Sync + 'static,
    ) {
        let name = name.into();
        if let Some(mut state) = self.shared.enter(Location::caller()) {
            let former = state.handle_queries(&name, Arc::new(handler));
            drop(state);
            drop(former);
        }
    }
}
