//! Child workflows.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::operation::PendingOp;
use crate::command::{Operation, StartChild};
use crate::job::StartOutcome;
use crate::options::{CancelType, IdReuse, ParentClose, Priority, Retry};
use crate::run::Value;
use crate::{CommandKind, Ctx, Failure, Headers, Name, Payload};

impl Ctx {
    /// Starts a child workflow. Its options can be set until it is first awaited.
    #[track_caller]
    pub fn child(&self, workflow: impl Into<Name>, input: impl Into<Payload>) -> Child {
        let workflow = workflow.into();
        let input = vec![input.into()];
        let op = self.schedule(Operation::Child, workflow.clone(), Location::caller(), |seq, id| {
            CommandKind::Child(Box::new(StartChild {
                seq,
                namespace: None,
                workflow_id: Name::from(id.to_string()),
                workflow,
                queue: None,
                input,
                execution_timeout: None,
                run_timeout: None,
                task_timeout: None,
                parent_close: ParentClose::default(),
                id_reuse: IdReuse::default(),
                retry: None,
                cron: None,
                headers: Headers::new(),
                memo: BTreeMap::new(),
                search_attributes: BTreeMap::new(),
                cancel: CancelType::default(),
                priority: Priority::default(),
                summary: None,
            }))
        });
        Child { op }
    }
}

/// A child workflow: await it for its result, or [`Child::started`] for its start. Dropping it cancels the child.
#[must_use = "dropping a child cancels it; await it or call `.detach()`"]
pub struct Child {
    op: PendingOp,
}

impl Child {
    /// Sets several options at once.
    #[track_caller]
    pub fn with(mut self, change: impl FnOnce(&mut StartChild)) -> Self {
        self.op.set(Location::caller(), |command| match command {
            CommandKind::Child(child) => {
                let seq = child.seq;
                change(child);
                child.seq = seq;
            }
            _ => unreachable!("the command of a child"),
        });
        self
    }

    /// Sets the workflow id; by default one that is derived from the run's seed.
    #[track_caller]
    pub fn workflow_id(self, workflow_id: impl Into<Name>) -> Self {
        self.with(|child| child.workflow_id = workflow_id.into())
    }

    /// Sets the task queue; the run's own by default.
    #[track_caller]
    pub fn queue(self, queue: impl Into<Name>) -> Self {
        self.with(|child| child.queue = Some(queue.into()))
    }

    /// Sets what happens to the child when this run closes.
    #[track_caller]
    pub fn parent_close(self, parent_close: ParentClose) -> Self {
        self.with(|child| child.parent_close = parent_close)
    }

    /// Sets whether the child's id may have been used before.
    #[track_caller]
    pub fn id_reuse(self, id_reuse: IdReuse) -> Self {
        self.with(|child| child.id_reuse = id_reuse)
    }

    /// Sets the retry policy after a failure.
    #[track_caller]
    pub fn retry(self, retry: Retry) -> Self {
        self.with(|child| child.retry = Some(retry))
    }

    /// Sets the timeout from the start of the first run to the end of the last.
    #[track_caller]
    pub fn execution_timeout(self, timeout: Duration) -> Self {
        self.with(|child| child.execution_timeout = Some(timeout))
    }

    /// Sets the timeout from the start of one run to its end.
    #[track_caller]
    pub fn run_timeout(self, timeout: Duration) -> Self {
        self.with(|child| child.run_timeout = Some(timeout))
    }

    /// Sets the effect of a cancellation.
    #[track_caller]
    pub fn cancel_type(self, cancel: CancelType) -> Self {
        self.with(|child| child.cancel = cancel)
    }

    /// Adds a header: metadata sent with the arguments.
    #[track_caller]
    pub fn header(self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
        self.with(|child| drop(child.headers.insert(name.into(), value.into())))
    }

    /// Awaits the start alone.
    pub fn started(self) -> ChildStart {
        ChildStart { op: Some(self.op) }
    }

    /// Detaches the child: it runs on, and its result is ignored.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for Child {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}

/// The start of a child: await it for a handle on the started child.
#[must_use = "dropping a child cancels it; await it"]
pub struct ChildStart {
    op: Option<PendingOp>,
}

impl Future for ChildStart {
    type Output = Result<StartedChild, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (op, run_id) = ready!(poll_started(&mut self.op, cx))?;
        Poll::Ready(Ok(StartedChild { run_id, op }))
    }
}

/// Polls the first of two resolutions, and returns the operation once it has come.
pub(super) fn poll_started(
    op: &mut Option<PendingOp>,
    cx: &mut Context<'_>,
) -> Poll<Result<(PendingOp, Name), Failure>> {
    let Some(pending) = op else { return Poll::Pending };
    let started = match ready!(pending.poll_start(cx)) {
        Ok(Value::Started(started)) => started,
        Ok(other) => unreachable!("the job was checked to fit the operation, yet brought {other:?}"),
        Err(cancelled) => return Poll::Ready(Err(cancelled.into())),
    };
    let pending = op.take().expect("the operation was just polled");
    Poll::Ready(match started {
        StartOutcome::As(id) => Ok((pending, id)),
        StartOutcome::Failed(failure) => Err(*failure),
    })
}

/// A child that has started: await it for its result. Dropping it cancels the child.
#[must_use = "dropping a child cancels it; await it or call `.detach()`"]
pub struct StartedChild {
    run_id: Name,
    op: PendingOp,
}

impl StartedChild {
    /// Returns the child's run id.
    pub fn run_id(&self) -> &Name {
        &self.run_id
    }

    /// Detaches the child: it runs on, and its result is ignored.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for StartedChild {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}
