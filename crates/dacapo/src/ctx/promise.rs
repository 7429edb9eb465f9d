//! Promises: results that a caller outside the run provides.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use dacapo_core::{Failure, Name, OperationId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::ResultReader;
use crate::{Ctx, Promise};

impl<S> Ctx<S> {
    /// Opens a promise: a result that a caller outside the run gives, by name (`Handle::resolve`). Await it for that result.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const ANSWER: Promise<bool> = Promise::new("answer");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let answer = ctx.with_timeout(days(2), ctx.promise(ANSWER)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn promise<T: DeserializeOwned>(&self, promise: Promise<T>) -> OpenPromise<T> {
        self.open_promise(promise.into())
    }

    /// Opens a promise by a name that is no constant, with a JSON result. See [`Ctx::promise`].
    #[track_caller]
    pub fn promise_raw(&self, name: impl Into<Name>) -> OpenPromise<Value> {
        self.open_promise(name.into())
    }

    #[track_caller]
    fn open_promise<T: DeserializeOwned>(&self, name: Name) -> OpenPromise<T> {
        let recorded = ResultReader::new(self, "promise", name.clone(), Location::caller());
        OpenPromise { pending: self.raw.promise(name), recorded }
    }
}

/// An open promise: a future of the value that a caller resolves it with. Dropping it closes it.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[activity] async fn ask(who: String, promise: String) -> Result<(), Failure> { Ok(()) }
/// # const ANSWER: Promise<bool> = Promise::new("answer");
/// # async fn example(ctx: Ctx) -> Result<(), Failure> {
/// let answer = ctx.promise(ANSWER);
/// ctx.call(ask, ("mona".into(), answer.id().to_string())).await?; // She answers by `Handle::resolve`.
/// println!("{}", answer.await?);
/// # Ok(()) }
/// ```
#[must_use = "dropping a promise closes it; await it"]
pub struct OpenPromise<T> {
    pending: dacapo_core::Promise,
    recorded: ResultReader<T>,
}

impl<T> OpenPromise<T> {
    /// Returns the id by which a caller can resolve it.
    pub fn id(&self) -> OperationId {
        self.pending.id()
    }
}

impl<T: DeserializeOwned> Future for OpenPromise<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}
