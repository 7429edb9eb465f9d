//! Signals and cancels to other workflows.

use std::panic::Location;

use dacapo_core::{CancelExternalCall, Name, SignalExternalCall, Target};
use serde::Serialize;
use serde_json::Value;

use super::recorded::encoded;
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
        let value = encoded(&self.raw, &value, Location::caller());
        self.raw.signal_external(workflow.into(), signal, value)
    }

    /// [`Ctx::signal_external`] for a signal that is only known by its name.
    #[track_caller]
    pub fn signal_external_raw(
        &self,
        workflow: impl Into<Target>,
        signal: impl Into<Name>,
        value: Value,
    ) -> SignalExternalCall {
        let value = encoded(&self.raw, &value, Location::caller());
        self.raw.signal_external(workflow.into(), signal, value)
    }

    /// Asks another workflow to cancel.
    #[track_caller]
    pub fn cancel_external(&self, workflow: impl Into<Target>, reason: impl Into<String>) -> CancelExternalCall {
        self.raw.cancel_external(workflow.into(), reason)
    }
}
