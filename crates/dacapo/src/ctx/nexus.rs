//! Nexus operations of other services.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use dacapo_core::{CallNexus, Failure, Name, Nexus, NexusStart};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded::{ResultReader, encoded};
use crate::Ctx;

impl<S> Ctx<S> {
    /// Calls a Nexus operation of another service, on backends that offer Nexus. Await it for its result.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let quote: u64 = ctx.nexus("payments", "Quotes", "quote", &order).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn nexus<I: Serialize + ?Sized, O: DeserializeOwned>(
        &self,
        endpoint: impl Into<Name>,
        service: impl Into<Name>,
        operation: impl Into<Name>,
        input: &I,
    ) -> NexusCall<O> {
        let (operation, input) = (operation.into(), encoded(self, input, Location::caller()));
        let recorded = ResultReader::new(self, "result of operation", operation.clone(), Location::caller());
        NexusCall { pending: self.raw.nexus(endpoint, service, operation, input), recorded }
    }
}

/// An operation of another service: await it for its result.
#[must_use = "dropping an operation cancels it; await it or call `.detach()`"]
pub struct NexusCall<O> {
    pending: Nexus,
    recorded: ResultReader<O>,
}

impl<O> NexusCall<O> {
    /// Sets several options at once.
    #[track_caller]
    pub fn with(self, change: impl FnOnce(&mut CallNexus)) -> Self {
        Self { pending: self.pending.with(change), ..self }
    }

    /// Awaits the start of the operation, for a handle on what has started. Its result is a payload, for [`Ctx::decode`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let quote = ctx.nexus::<_, u64>("payments", "Quotes", "quote", &order).started().await?;
    /// let cents: u64 = ctx.decode(&quote.await?)?;
    /// # Ok(()) }
    /// ```
    pub fn started(self) -> NexusStart {
        self.pending.started()
    }

    /// Detaches the operation: it runs on, and the workflow does not await its result.
    pub fn detach(self) {
        self.pending.detach();
    }
}

impl<O: DeserializeOwned> Future for NexusCall<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}
