//! Promises: results that a caller outside the run provides.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::operation::PendingOp;
use crate::command::{CreatePromise, Operation};
use crate::{CommandKind, Ctx, Failure, Name, OperationId, Payload};

impl Ctx {
    /// Opens a promise that a caller outside the run resolves, by its name or its id.
    #[track_caller]
    pub fn promise(&self, name: impl Into<Name>) -> Promise {
        let name = name.into();
        let mut promised = OperationId::default();
        let op = self.schedule(Operation::Promise, name.clone(), Location::caller(), |seq, id| {
            promised = id;
            CommandKind::Promise(Box::new(CreatePromise { seq, id, name }))
        });
        Promise { id: promised, op }
    }
}

/// A promise: await it for its result. Dropping it closes it.
#[must_use = "dropping a promise closes it; await it"]
pub struct Promise {
    id: OperationId,
    op: PendingOp,
}

impl Promise {
    /// Returns the id by which a caller resolves the promise.
    pub fn id(&self) -> OperationId {
        self.id
    }
}

impl Future for Promise {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}
