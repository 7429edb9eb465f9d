//! Operations of other services.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::child::poll_started;
use super::operation::PendingOp;
use crate::command::{CallNexus, Operation};
use crate::options::CancelType;
use crate::{CommandKind, Ctx, Failure, Name, Payload};

impl Ctx {
    /// Calls an operation of another service, for backends that offer that.
    #[track_caller]
    pub fn nexus(
        &self,
        endpoint: impl Into<Name>,
        service: impl Into<Name>,
        operation: impl Into<Name>,
        input: impl Into<Payload>,
    ) -> Nexus {
        let (endpoint, service, operation) = (endpoint.into(), service.into(), operation.into());
        let input = input.into();
        let op = self.schedule(Operation::Nexus, operation.clone(), Location::caller(), |seq, _| {
            CommandKind::Nexus(Box::new(CallNexus {
                seq,
                endpoint,
                service,
                operation,
                input,
                schedule_to_close: None,
                schedule_to_start: None,
                start_to_close: None,
                headers: BTreeMap::new(),
                cancel: CancelType::default(),
                summary: None,
            }))
        });
        Nexus { op }
    }
}

/// An operation of another service: await it for its result, or [`Nexus::started`] for its start.
#[must_use = "dropping an operation cancels it; await it or call `.detach()`"]
pub struct Nexus {
    op: PendingOp,
}

impl Nexus {
    /// Sets several options at once.
    #[track_caller]
    pub fn with(mut self, change: impl FnOnce(&mut CallNexus)) -> Self {
        self.op.set(Location::caller(), |command| match command {
            CommandKind::Nexus(call) => {
                let seq = call.seq;
                change(call);
                call.seq = seq;
            }
            _ => unreachable!("the command of a call"),
        });
        self
    }

    /// Awaits the start alone.
    pub fn started(self) -> NexusStart {
        NexusStart { op: Some(self.op) }
    }

    /// Detaches the operation: it runs on, and its result is ignored.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for Nexus {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}

/// The start of an operation: await it for a handle on the started operation.
#[must_use = "dropping an operation cancels it; await it"]
pub struct NexusStart {
    op: Option<PendingOp>,
}

impl Future for NexusStart {
    type Output = Result<StartedNexus, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (op, token) = ready!(poll_started(&mut self.op, cx))?;
        Poll::Ready(Ok(StartedNexus { token, op }))
    }
}

/// An operation that has started: await it for its result.
#[must_use = "dropping an operation cancels it; await it"]
pub struct StartedNexus {
    token: Name,
    op: PendingOp,
}

impl StartedNexus {
    /// Returns the token that the service gave; empty if it answered at once.
    pub fn token(&self) -> &Name {
        &self.token
    }
}

impl Future for StartedNexus {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}
