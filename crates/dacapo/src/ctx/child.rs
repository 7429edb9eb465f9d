//! Child workflows.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dacapo_core::{CancelType, Failure, IdReuse, Name, ParentClose, Payload, Retry, StartChild, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::{ResultReader, accepted, encoded_all};
use super::setters::{header_setters, setters};
use crate::interceptor::OutboundKind;
use crate::{Ctx, Signal, SignalExternalCall, WorkflowFn, WorkflowType};

impl<S> Ctx<S> {
    /// Starts a child workflow: await it for its result. Options can be set until it is first awaited.
    ///
    /// The child is a run of its own, with its own history. Dropping the future cancels it; `.detach()` lets it run on.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let tracking = ctx.child(ship, order).id("ship-42").run_timeout(days(3)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn child<F, P>(
        &self,
        workflow: F,
        input: <F::Workflow as WorkflowType>::Input,
    ) -> Child<<F::Workflow as WorkflowType>::Output>
    where
        F: WorkflowFn<P>,
    {
        let _ = workflow;
        let input = accepted(self, F::Workflow::encode(input, self.converter()), Location::caller());
        self.child_payloads(Name::from_static(F::Workflow::NAME), input)
    }

    /// Starts a child workflow by its name, with JSON. Several arguments are several values. See [`Ctx::child`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo::json::json;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let tracking = ctx.child_raw("ship", [json!({ "order": 42 })]).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn child_raw(&self, workflow: impl Into<Name>, input: impl IntoIterator<Item = Value>) -> Child<Value> {
        self.child_payloads(workflow.into(), encoded_all(self, input, Location::caller()))
    }

    #[track_caller]
    fn child_payloads<O: DeserializeOwned>(&self, name: Name, input: Vec<Payload>) -> Child<O> {
        let recorded = ResultReader::new(self, "result of child", name.clone(), Location::caller());
        let headers = self.outbound_headers(OutboundKind::Child, &name);
        let pending = self.raw.child(name, Payload::empty());
        Child { pending, id: Name::default(), ctx: self.plain(), recorded }.with(|child| {
            child.input = input;
            child.headers = headers;
        })
    }
}

/// A child workflow: await it for its result, or [`Child::started`] for its start. Dropping it cancels the child.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[workflow] async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
/// // Ships even if this workflow ends before.
/// ctx.child(ship, order).id("ship-42").parent_close(ParentClose::Abandon).started().await?.detach();
/// # Ok(()) }
/// ```
#[must_use = "dropping a child cancels it; await it or call `.detach()`"]
pub struct Child<O> {
    pending: dacapo_core::Child,
    id: Name,
    ctx: Ctx,
    recorded: ResultReader<O>,
}

impl<O> Child<O> {
    /// Sets several options at once.
    #[track_caller]
    pub fn with(self, change: impl FnOnce(&mut StartChild)) -> Self {
        let mut id = self.id;
        let pending = self.pending.with(|child| {
            change(child);
            id = child.workflow_id.clone();
        });
        Self { pending, id, ..self }
    }

    /// Sets the workflow id; by default one that follows from the seed of this run.
    #[track_caller]
    pub fn id(self, workflow_id: impl Into<Name>) -> Self {
        self.with(|child| child.workflow_id = workflow_id.into())
    }

    setters! {
        /// Sets the task queue; by default the queue of this run.
        queue(queue: impl Into<Name>);

        /// Sets what happens to the child when this run closes.
        parent_close(parent_close: ParentClose);

        /// Sets whether the workflow id may have been used by a closed run.
        id_reuse(id_reuse: IdReuse);

        /// Sets when the child is run again after a failure.
        retry(retry: Retry);

        /// Limits the time from the start of its first run to the end of its last.
        execution_timeout(timeout: Duration);

        /// Limits the time of one run of the child.
        run_timeout(timeout: Duration);

        /// Sets what a cancellation does: whether it is sent to the child, and whether this workflow waits for its end.
        cancel_type(cancel: CancelType);
    }

    header_setters! {}

    /// Sets the priority of its tasks: those with lower numbers start first.
    #[track_caller]
    pub fn priority(self, priority: dacapo_core::Priority) -> Self {
        self.with(|child| child.priority = priority)
    }

    /// Sets a line for people, which histories show.
    #[track_caller]
    pub fn summary(self, summary: impl Into<String>) -> Self {
        self.with(|child| child.summary = Some(summary.into()))
    }

    /// Returns the child's workflow id.
    pub fn workflow_id(&self) -> &Name {
        &self.id
    }

    /// Awaits the start of the child, and gives a handle on the child that has started.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # const HURRY: Signal<u32> = Signal::new("hurry");
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let child = ctx.child(ship, order).started().await?;
    /// child.signal(HURRY, 2).await?;
    /// println!("{} has arrived: {}", child.workflow_id().clone(), child.await?);
    /// # Ok(()) }
    /// ```
    pub fn started(self) -> ChildStart<O> {
        let handle = (self.id, self.ctx, self.recorded);
        ChildStart { pending: self.pending.started(), handle: Some(handle) }
    }

    /// Detaches the child: it runs on, and the workflow does not await its result.
    pub fn detach(self) {
        self.pending.detach();
    }
}

impl<O: DeserializeOwned> Future for Child<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}

/// The start of a child: await it for a handle on the started child.
#[must_use = "dropping a child cancels it; await it"]
pub struct ChildStart<O> {
    pending: dacapo_core::ChildStart,
    /// The parts of the handle that the start returns.
    handle: Option<(Name, Ctx, ResultReader<O>)>,
}

impl<O> Future for ChildStart<O> {
    type Output = Result<StartedChild<O>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pending = ready!(Pin::new(&mut self.pending).poll(cx))?;
        let (id, ctx, recorded) = self.handle.take().expect("a start is not polled after its end");
        Poll::Ready(Ok(StartedChild { pending, id, ctx, recorded }))
    }
}

/// A child that has started: await it for its result. Dropping it cancels the child.
#[must_use = "dropping a child cancels it; await it or call `.detach()`"]
pub struct StartedChild<O> {
    pending: dacapo_core::StartedChild,
    id: Name,
    ctx: Ctx,
    recorded: ResultReader<O>,
}

impl<O> StartedChild<O> {
    /// Returns the child's workflow id.
    pub fn workflow_id(&self) -> &Name {
        &self.id
    }

    /// Returns the child's run id.
    pub fn run_id(&self) -> &Name {
        self.pending.run_id()
    }

    /// Sends a signal to the child.
    #[track_caller]
    pub fn signal<T: Serialize>(&self, signal: Signal<T>, value: T) -> SignalExternalCall {
        self.ctx.signal_external(Target::Child { workflow_id: self.id.clone() }, signal, value)
    }

    /// Detaches the child: it runs on, and the workflow does not await its result.
    pub fn detach(self) {
        self.pending.detach();
    }
}

impl<O: DeserializeOwned> Future for StartedChild<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|outcome| self.recorded.read(outcome))
    }
}
