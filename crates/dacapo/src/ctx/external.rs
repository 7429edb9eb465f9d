//! Signals and cancels to other workflows.

use std::panic::Location;

use dacapo_core::{CancelExternalCall, Name, Payload, SignalExternalCall, Target};
use serde::Serialize;
use serde_json::Value;

use super::recorded::encoded;
use crate::interceptor::OutboundKind;
use crate::{Ctx, Signal};

impl<S> Ctx<S> {
    /// Signals another workflow, by its id or by a [`Target`].
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

    /// [`Ctx::signal_external`] for a signal that is only known by its name.
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

    /// Asks another workflow to cancel.
    #[track_caller]
    pub fn cancel_external(&self, workflow: impl Into<Target>, reason: impl Into<String>) -> CancelExternalCall {
        self.raw.cancel_external(workflow.into(), reason)
    }
}
