//! Side effects of the workflow itself, which are recorded with their results.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use dacapo_core::{Failure, Name, Retry};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::ResultReader;
use super::setters::setters;
use crate::Ctx;

impl<S> Ctx<S> {
    /// Runs a closure outside the workflow and records its result: replay takes the record and never runs the closure again.
    ///
    /// For small effects that need no activity, such as reading a file. If the process dies before the turn that takes the
    /// result is committed, the closure runs again. Its name and its place in the program identify it; it gets no ctx.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let version = ctx.side_effect("read version", || async { Ok(std::fs::read_to_string("VERSION").or_fail()?) }).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn side_effect<T, F, P>(&self, name: impl Into<Name>, body: F) -> SideEffect<T>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce() -> P + Send + 'static,
        P: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let name = name.into();
        let recorded = ResultReader::new(self, "result of side effect", name.clone(), Location::caller());
        let converter = self.converter().clone();
        let pending = self.raw.side_effect(name, move || {
            let value = body();
            async move { converter.encode(&value.await?) }
        });
        SideEffect { pending, recorded }
    }
}

/// A side effect: await it for its result. Dropping it cancels it.
///
/// ```
/// # use dacapo::prelude::*;
/// # async fn example(ctx: Ctx) -> Result<(), Failure> {
/// let host = ctx
///     .side_effect("read host", || async { Ok(std::env::var("HOST").or_fail()?) })
///     .retry(Retry::none())
///     .summary("which machine began it")
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "dropping a side effect cancels it; await it"]
pub struct SideEffect<T> {
    pending: dacapo_core::SideEffect,
    recorded: ResultReader<T>,
}

impl<T> SideEffect<T> {
    setters! {
        /// Sets when failed attempts are tried again.
        retry(retry: Retry);

        /// Limits the time of one attempt.
        start_to_close(timeout: Duration);

        /// Sets a line for people, which histories show.
        summary(summary: impl Into<String>);
    }
}

impl<T: DeserializeOwned> Future for SideEffect<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}
