//! Signals and cancels to other workflows.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::operation::PendingOp;
use crate::command::{CancelExternal, Operation, SignalExternal};
use crate::run::Value;
use crate::{Cancelled, CommandKind, Ctx, Failure, Headers, Name, Payload, Target};

impl Ctx {
    /// Signals another workflow.
    #[track_caller]
    pub fn signal_external(
        &self,
        target: Target,
        signal: impl Into<Name>,
        input: impl Into<Payload>,
    ) -> SignalExternalCall {
        let signal = signal.into();
        let input = vec![input.into()];
        let op = self.schedule(Operation::SignalExternal, signal.clone(), Location::caller(), |seq, _| {
            CommandKind::SignalExternal(Box::new(SignalExternal {
                seq,
                target,
                signal,
                input,
                headers: Headers::new(),
            }))
        });
        SignalExternalCall { op }
    }

    /// Asks another workflow to cancel.
    #[track_caller]
    pub fn cancel_external(&self, target: Target, reason: impl Into<String>) -> CancelExternalCall {
        let name = Name::from(target.to_string());
        let reason = reason.into();
        let op = self.schedule(Operation::CancelExternal, name, Location::caller(), |seq, _| {
            CommandKind::CancelExternal(Box::new(CancelExternal { seq, target, reason }))
        });
        CancelExternalCall { op }
    }
}

/// A signal to another workflow: await it to know that it arrived. Dropping it before that cancels the signal if it was
/// not sent yet.
#[must_use = "dropping a signal takes it back if it was not sent yet; await it or call `.detach()`"]
pub struct SignalExternalCall {
    op: PendingOp,
}

impl SignalExternalCall {
    /// Adds a header: metadata sent with the arguments.
    #[track_caller]
    pub fn header(mut self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
        self.op.set(Location::caller(), |command| match command {
            CommandKind::SignalExternal(call) => drop(call.headers.insert(name.into(), value.into())),
            _ => unreachable!("the command of a signal"),
        });
        self
    }

    /// Sends it without waiting for its arrival.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for SignalExternalCall {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_value(cx).map(delivered)
    }
}

/// A request to another workflow to cancel: await it to know that it arrived.
#[must_use = "await it to know that the request arrived, or call `.detach()`"]
pub struct CancelExternalCall {
    op: PendingOp,
}

impl CancelExternalCall {
    /// Sends it without waiting for its arrival.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for CancelExternalCall {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_value(cx).map(delivered)
    }
}

fn delivered(result: Result<Value, Cancelled>) -> Result<(), Failure> {
    match result? {
        Value::Delivered(None) => Ok(()),
        Value::Delivered(Some(failure)) => Err(*failure),
        other => unreachable!("the job was checked to fit the operation, yet brought {other:?}"),
    }
}
