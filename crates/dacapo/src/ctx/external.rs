//! Signals and cancels to other workflows.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use dacapo_core::{CancelExternalCall, Failure, Name, Payload, Target};
use serde::Serialize;
use serde_json::Value;

use super::recorded::{encoded, encoded_header};
use crate::interceptor::OutboundKind;
use crate::{Converter, Ctx, Signal};

impl<S> Ctx<S> {
    /// Sends a signal to another workflow, by its workflow id or by a [`Target`]. Await it for the delivery.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const RESTOCK: Signal<u32> = Signal::new("restock");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.signal_external("warehouse", RESTOCK, 12).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn signal_external<T: Serialize>(
        &self,
        workflow: impl Into<Target>,
        signal: Signal<T>,
        value: T,
    ) -> SignalExternalCall {
        let value = encoded(self, &value, Location::caller());
        self.signal_payload(workflow.into(), signal.into(), value)
    }

    #[track_caller]
    fn signal_payload(&self, workflow: Target, signal: Name, value: Payload) -> SignalExternalCall {
        let headers = self.outbound_headers(OutboundKind::SignalExternal, &signal);
        let call = self.raw.signal_external(workflow, signal, value);
        let pending = headers.into_iter().fold(call, |call, (name, value)| call.header(name, value));
        SignalExternalCall { pending, ctx: self.raw.clone(), converter: self.converter().clone() }
    }

    /// Sends a signal to another workflow by its name, with JSON. See [`Ctx::signal_external`].
    #[track_caller]
    pub fn signal_external_raw(
        &self,
        workflow: impl Into<Target>,
        signal: impl Into<Name>,
        value: Value,
    ) -> SignalExternalCall {
        let value = encoded(self, &value, Location::caller());
        self.signal_payload(workflow.into(), signal.into(), value)
    }

    /// Asks another workflow to cancel itself. Await it for the delivery.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.cancel_external("order-42", "the customer has left").await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn cancel_external(&self, workflow: impl Into<Target>, reason: impl Into<String>) -> CancelExternalCall {
        self.raw.cancel_external(workflow.into(), reason)
    }
}

/// A signal to another workflow: await it for its delivery. Dropping it before it is sent takes it back.
#[must_use = "dropping a signal takes it back if it was not sent yet; await it or call `.detach()`"]
pub struct SignalExternalCall {
    pending: dacapo_core::SignalExternalCall,
    ctx: dacapo_core::Ctx,
    converter: Converter,
}

impl SignalExternalCall {
    /// Adds a header: a named value that travels beside the value. One that cannot be encoded fails the activation.
    #[track_caller]
    pub fn header<T: Serialize + ?Sized>(self, name: impl Into<Name>, value: &T) -> Self {
        let name = name.into();
        let value = encoded_header(&self.ctx, &self.converter, &name, value, Location::caller());
        self.header_payload(name, value)
    }

    /// Adds a header that is encoded already.
    #[track_caller]
    pub fn header_payload(self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
        Self { pending: self.pending.header(name, value), ..self }
    }

    /// Detaches the signal: it is sent, and the workflow does not wait for its delivery.
    pub fn detach(self) {
        self.pending.detach();
    }
}

impl Future for SignalExternalCall {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx)
    }
}
