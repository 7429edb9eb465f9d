//! The common part of all durable futures: a ticket for an operation, and what polling and dropping it does.

use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::command::Operation;
use crate::run::{Polled, Shared, SlotId, Ticket, Value};
use crate::{Cancelled, CommandKind, Ctx, Failure, Name, OperationId, Payload, Seq, ViolationKind};

/// A scheduled operation. Dropping it cancels the operation; [`PendingOp::detach`] lets it run on.
pub(crate) struct PendingOp {
    pub(crate) shared: Arc<Shared>,
    ticket: Ticket,
}

impl Ctx {
    pub(crate) fn schedule(
        &self,
        operation: Operation,
        name: Name,
        site: &'static Location<'static>,
        make: impl FnOnce(Seq, OperationId) -> CommandKind,
    ) -> PendingOp {
        let ticket = match self.shared.enter(site) {
            Some(mut state) => state.schedule(operation, name, site, make),
            None => Ticket::NEVER,
        };
        PendingOp { shared: self.shared.clone(), ticket }
    }
}

impl PendingOp {
    /// Returns the operation's seq, unless it was never started.
    pub(crate) fn seq(&self) -> Option<Seq> {
        match self.ticket.slot {
            SlotId::Operation(seq) => Some(seq),
            _ => None,
        }
    }

    /// Sets an option of the command, which must still be open.
    pub(crate) fn set(&mut self, site: &'static Location<'static>, set: impl FnOnce(&mut CommandKind)) {
        let Some(mut state) = self.shared.enter(site) else { return };
        // `set` may be user code: it runs outside the lock, and on a copy, because it may unwind.
        let mut command = match state.open_command(self.ticket) {
            Some(command) => command.clone(),
            None if self.ticket.slot == SlotId::Never => return,
            None => {
                let command = state.name_of(self.ticket);
                self.shared.misuse(state, ViolationKind::SealedSetter { command })
            }
        };
        drop(state);
        set(&mut command);
        if let Some(mut state) = self.shared.enter(site)
            && let Some(open) = state.open_command(self.ticket)
        {
            *open = command;
        }
    }

    pub(crate) fn poll_value(&mut self, cx: &mut Context<'_>) -> Poll<Result<Value, Cancelled>> {
        let polled = self.poll_slot(self.ticket.slot, cx);
        if polled.is_ready() {
            self.ticket = Ticket::NEVER; // There is nothing left to cancel.
        }
        polled
    }

    /// Polls the first of two resolutions.
    pub(crate) fn poll_start(&mut self, cx: &mut Context<'_>) -> Poll<Result<Value, Cancelled>> {
        let slot = self.seq().map_or(SlotId::Never, SlotId::Start);
        self.poll_slot(slot, cx)
    }

    fn poll_slot(&mut self, slot: SlotId, cx: &mut Context<'_>) -> Poll<Result<Value, Cancelled>> {
        let Some(mut state) = self.shared.enter_poll() else { return Poll::Ready(Err(Cancelled::evicted())) };
        state.seal_ticket(self.ticket);
        let (polled, waker) = state.poll_slot(slot, cx.waker());
        drop(state);
        drop(waker);
        polled.into_poll()
    }

    /// Polls for the result of an operation whose resolution is an outcome.
    pub(crate) fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Payload, Failure>> {
        self.poll_value(cx).map(|result| match result? {
            Value::Outcome(outcome) => outcome.into(),
            other => unreachable!("the job was checked to fit the operation, yet brought {other:?}"),
        })
    }

    /// Lets the operation run on. Its result is ignored.
    pub(crate) fn detach(mut self) {
        if let Some(mut state) = self.shared.enter_drop() {
            state.seal_ticket(self.ticket);
            state.forget(self.ticket.slot);
        }
        self.ticket = Ticket::NEVER;
    }
}

impl Drop for PendingOp {
    fn drop(&mut self) {
        if self.ticket.slot == SlotId::Never {
            return;
        }
        if let Some(mut state) = self.shared.enter_drop() {
            state.seal_ticket(self.ticket);
            let waker = state.leave(self.ticket.slot, String::new());
            drop(state);
            drop(waker);
        }
    }
}

impl Polled {
    pub(crate) fn into_poll(self) -> Poll<Result<Value, Cancelled>> {
        match self {
            Self::Ready(value) => Poll::Ready(Ok(value)),
            Self::Cancelled(cancelled) => Poll::Ready(Err(cancelled)),
            Self::Pending => Poll::Pending,
        }
    }
}
