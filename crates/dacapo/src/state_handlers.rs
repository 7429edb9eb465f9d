//! Handlers of workflows with state, as generated code registers them: synchronous ones over the state, async ones with
//! the ctx.

use std::future::Future;
use std::sync::Arc;

use dacapo_core::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Ctx, Query, Signal, Update};

/// A signal handler that changes the state.
#[track_caller]
pub fn signal<S, T>(
    ctx: &Ctx<S>,
    signal: Signal<T>,
    handler: impl Fn(&mut S, T) -> Result<(), Failure> + Send + Sync + 'static,
) where
    S: Send + 'static,
    T: DeserializeOwned + Send + 'static,
{
    let (cell, handler) = (ctx.state_cell().clone(), Arc::new(handler));
    ctx.on_signal(signal, move |input| {
        let (cell, handler) = (cell.clone(), handler.clone());
        async move { cell.update(|state| handler(state, input)) }
    });
}

/// A signal handler that waits.
#[track_caller]
pub fn signal_async<S, T, P>(ctx: &Ctx<S>, signal: Signal<T>, handler: impl Fn(Ctx<S>, T) -> P + Send + Sync + 'static)
where
    S: Send + 'static,
    T: DeserializeOwned + Send + 'static,
    P: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let inner = ctx.clone();
    ctx.on_signal(signal, move |input| handler(inner.clone(), input));
}

/// An update handler that changes the state.
#[track_caller]
pub fn update<S, I, O>(
    ctx: &Ctx<S>,
    update: Update<I, O>,
    validator: impl Fn(&S, &I) -> Result<(), Failure> + Send + Sync + 'static,
    handler: impl Fn(&mut S, I) -> Result<O, Failure> + Send + Sync + 'static,
) where
    S: Send + 'static,
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
{
    let (cell, handler) = (ctx.state_cell().clone(), Arc::new(handler));
    let seen = cell.clone();
    ctx.on_update(
        update,
        move |input| seen.read(|state| validator(state, input)),
        move |input| {
            let (cell, handler) = (cell.clone(), handler.clone());
            async move { cell.update(|state| handler(state, input)) }
        },
    );
}

/// An update handler that waits.
#[track_caller]
pub fn update_async<S, I, O, P>(
    ctx: &Ctx<S>,
    update: Update<I, O>,
    validator: impl Fn(&S, &I) -> Result<(), Failure> + Send + Sync + 'static,
    handler: impl Fn(Ctx<S>, I) -> P + Send + Sync + 'static,
) where
    S: Send + 'static,
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
    P: Future<Output = Result<O, Failure>> + Send + 'static,
{
    let (inner, seen) = (ctx.clone(), ctx.state_cell().clone());
    ctx.on_update(
        update,
        move |input| seen.read(|state| validator(state, input)),
        move |input| handler(inner.clone(), input),
    );
}

/// A query handler.
#[track_caller]
pub fn query<S, I, O>(
    ctx: &Ctx<S>,
    query: Query<I, O>,
    handler: impl Fn(&S, I) -> Result<O, Failure> + Send + Sync + 'static,
) where
    S: Send + 'static,
    I: DeserializeOwned + 'static,
    O: Serialize + 'static,
{
    let cell = ctx.state_cell().clone();
    ctx.on_query(query, move |input| cell.read(|state| handler(state, input)));
}
