//! Workflows as typed functions.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dacapo_core::{Failure, Order, Payload, Pins, UnfinishedHandlers, Workflow};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::interceptor::intercepted_workflow;
use crate::{Converter, Ctx, Layers};

/// The type of a workflow: its name, its types, and how it is decoded and played. `#[workflow]` implements it.
pub trait WorkflowType: Sized + 'static {
    /// The name under which the workflow is recorded.
    const NAME: &'static str;
    /// The state that its handlers share; `()` for a function.
    type State: Send + 'static;
    /// The input: `()`, the one argument, or a tuple of several.
    type Input: Send + 'static;
    /// The result.
    type Output: Serialize + DeserializeOwned + Send + 'static;
    /// The error.
    type Error: Send + 'static;

    /// Encodes an input as payloads, one for each argument.
    fn encode(input: Self::Input, converter: &Converter) -> Result<Vec<Payload>, Failure>;

    /// Decodes payloads as an input.
    fn decode(input: Vec<Payload>, converter: &Converter) -> Result<Self::Input, Failure>;

    /// Converts an error of the workflow into a failure.
    fn failure(error: Self::Error) -> Failure;

    /// Creates the first state of a run.
    fn init(input: &Self::Input) -> Self::State;

    /// Registers the handlers of a run, before its function begins.
    fn handlers(ctx: &Ctx<Self::State>);

    /// Calls the workflow's function.
    fn play(ctx: Ctx<Self::State>, input: Self::Input) -> WorkflowFuture<Self>;

    /// Returns the definition that a worker registers.
    fn definition() -> WorkflowDef;
}

/// A function that is a workflow, whatever its arguments: functions marked `#[workflow]`, and `Type::run` of a type whose
/// impl block is marked so.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    label = "this is not a workflow",
    note = "mark the function with `#[workflow]`; an activity is called with `ctx.call`",
    note = "to start a workflow that is only known by its name, use `ctx.child_raw(name, [json])`"
)]
pub trait WorkflowFn<P> {
    /// The type of the workflow.
    type Workflow: WorkflowType;
}

macro_rules! workflow_fns {
    ($(($($param:ident)*))*) => {$(
        impl<F, W, $($param),*> WorkflowFn<($($param,)*)> for F
        where
            F: Fn($($param),*) -> WorkflowFuture<W>,
            W: WorkflowType,
        {
            type Workflow = W;
        }
    )*};
}

// A ctx and four arguments at most.
workflow_fns! { (P) (P Q) (P Q R) (P Q R S) (P Q R S T) }

type Outcome<W> = Result<<W as WorkflowType>::Output, <W as WorkflowType>::Error>;

/// The future that a call of a workflow function returns. Awaited in another workflow it is a part of that one; to
/// start a run of its own, write `ctx.child(workflow, input)`.
#[must_use = "a workflow does nothing unless it is awaited"]
pub struct WorkflowFuture<W: WorkflowType> {
    body: Pin<Box<dyn Future<Output = Outcome<W>> + Send>>,
}

impl<W: WorkflowType> WorkflowFuture<W> {
    /// Creates the future of this body.
    pub fn new(body: impl Future<Output = Outcome<W>> + Send + 'static) -> Self {
        Self { body: Box::pin(body) }
    }
}

impl<W: WorkflowType> Future for WorkflowFuture<W> {
    type Output = Outcome<W>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.body.as_mut().poll(cx)
    }
}

/// A workflow as a worker registers it, with what its new runs are pinned to.
#[derive(Clone)]
pub struct WorkflowDef {
    /// The function.
    pub workflow: Workflow,
    /// Facts that a run which begins now keeps for life.
    pub pins: Pins,
    /// Makes the function anew with the converter and the interceptors of an app; none for a raw workflow.
    typed: Option<TypedWorkflow>,
}

/// Makes the function of a typed workflow with the converter and the interceptors of an app.
type TypedWorkflow = Arc<dyn Fn(&Layers) -> Workflow + Send + Sync>;

impl fmt::Debug for WorkflowDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowDef").field("workflow", &self.workflow).field("pins", &self.pins).finish()
    }
}

impl WorkflowDef {
    /// Creates the definition of a typed workflow.
    #[track_caller]
    pub fn of<W: WorkflowType>(order: Order, unfinished_handlers: UnfinishedHandlers) -> Self {
        let site = Location::caller();
        let typed = move |layers: &Layers| {
            let layers = layers.clone();
            let workflow = Workflow::new(W::NAME, move |raw, input| play::<W>(raw, input, layers.clone(), site));
            workflow.unfinished_handlers(unfinished_handlers)
        };
        let workflow = typed(&Layers::default());
        Self { workflow, pins: Pins { order, ..Pins::default() }, typed: Some(Arc::new(typed)) }
    }

    /// Returns the function with the converter of an app, inside its interceptors.
    pub(crate) fn in_layers(&self, layers: &Layers) -> Workflow {
        let workflow = self.typed.as_ref().map_or_else(|| self.workflow.clone(), |typed| typed(layers));
        intercepted_workflow(workflow, layers)
    }
}

/// A raw workflow, with the pins of every run that says nothing else.
impl From<Workflow> for WorkflowDef {
    fn from(workflow: Workflow) -> Self {
        Self { workflow, pins: Pins::default(), typed: None }
    }
}

async fn play<W: WorkflowType>(
    raw: dacapo_core::Ctx,
    input: Vec<Payload>,
    layers: Layers,
    site: &'static Location<'static>,
) -> Result<Payload, Failure> {
    let refuse = |what: &str, failure: Failure, advice: &str| -> ! {
        let stays = "The run stays open; it goes on once the code can read what was recorded";
        raw.refuse(format!("{what} of workflow {:?}: {failure}\n{stays}{advice}.", W::NAME), site)
    };
    let restart = ". If what was sent is wrong, terminate the run, and start it again with a right input";
    let input = W::decode(input, &layers.converter).unwrap_or_else(|failure| refuse("the input", failure, restart));
    let converter = layers.converter.clone();
    let ctx = Ctx::in_layers(raw.clone(), W::init(&input), layers);
    W::handlers(&ctx);
    let output = W::play(ctx, input).await.map_err(W::failure)?;
    Ok(converter.encode(&output).unwrap_or_else(|failure| refuse("the result", failure, "")))
}
