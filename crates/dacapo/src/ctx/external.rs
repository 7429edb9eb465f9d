//! Signals and cancels to other workflows.

use std::panic::Location;

use dacapo_core::{CancelExternalCall, Name, Payload, SignalExternalCall, Target};
use serde::Serialize;
use serde_json::Value;

use super::recorded::encoded;
use crate::interceptor::OutboundKind;
use crate::{Ctx, Signal};

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
        headers.into_iter().fold(call, |call, (name, value)| call.header(name, value))
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
