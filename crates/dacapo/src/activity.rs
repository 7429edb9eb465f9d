//! Activities as typed functions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use dacapo_core::{Failure, Payload};
use dacapo_worker::Activity;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{ActivityCtx, Converter, Layers};

/// The type of an activity: its name, its types, and how it is decoded and run. `#[activity]` implements it.
pub trait ActivityType: Sized + 'static {
    /// The name under which the activity is recorded.
    const NAME: &'static str;
    /// Whether the activity blocks its thread.
    const BLOCKING: bool;
    /// The value of which the activity is a method; `()` for a function.
    type Receiver: Send + Sync + 'static;
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

    /// Converts an error of the activity into a failure.
    fn failure(error: Self::Error) -> Failure;

    /// Calls the activity's function.
    fn attempt(receiver: &Arc<Self::Receiver>, ctx: ActivityCtx, input: Self::Input) -> Attempt<Self>;
}

/// A function that is an activity, whatever its parameters: functions and methods marked `#[activity]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an activity",
    label = "this is not an activity",
    note = "mark the function with `#[activity]`; a workflow is started with `ctx.child`",
    note = "to call an activity that is only known by its name, use `ctx.call_raw(name, [json])`"
)]
pub trait ActivityFn<P> {
    /// The type of the activity.
    type Activity: ActivityType;
}

macro_rules! activity_fns {
    ($(($($param:ident)*))*) => {$(
        impl<F, A, $($param),*> ActivityFn<($($param,)*)> for F
        where
            F: Fn($($param),*) -> Attempt<A>,
            A: ActivityType,
        {
            type Activity = A;
        }
    )*};
}

// A receiver, a ctx and four arguments at most.
activity_fns! { () (P) (P Q) (P Q R) (P Q R S) (P Q R S T) (P Q R S T U) }

/// The body of an attempt, not yet begun or under way.
enum Code<T> {
    Awaits(Pin<Box<dyn Future<Output = T> + Send>>),
    Blocks(Option<Box<dyn FnOnce() -> T + Send>>),
}

type Outcome<A> = Result<<A as ActivityType>::Output, <A as ActivityType>::Error>;

/// An attempt of an activity, as a call of its function returns it. Await it, in a unit test for instance.
#[must_use = "an attempt does nothing unless it is awaited; in a workflow, write `ctx.call(activity, input)`"]
pub struct Attempt<A: ActivityType> {
    body: Code<Outcome<A>>,
}

impl<A: ActivityType> Attempt<A> {
    /// Creates an attempt that awaits.
    pub fn new(body: impl Future<Output = Outcome<A>> + Send + 'static) -> Self {
        Self { body: Code::Awaits(Box::pin(body)) }
    }

    /// Creates an attempt that blocks its thread.
    pub fn blocking(body: impl FnOnce() -> Outcome<A> + Send + 'static) -> Self {
        Self { body: Code::Blocks(Some(Box::new(body))) }
    }

    /// Runs the attempt to its end on this thread: for unit tests without a runtime, and for activities that block.
    pub fn wait(self) -> Outcome<A> {
        block_on(self)
    }
}

/// Polls a future on this thread until it ends.
pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

impl<A: ActivityType> Future for Attempt<A> {
    type Output = Outcome<A>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if dacapo_core::is_playing() {
            // The run would not record its effect, and every replay would cause it again.
            let message = format!("activity {:?} was awaited in a workflow: write `ctx.call(…)` instead", A::NAME);
            std::panic::resume_unwind(Box::new(message));
        }
        match &mut self.body {
            Code::Awaits(body) => body.as_mut().poll(cx),
            Code::Blocks(body) => {
                let body = body.take().expect("an attempt is not polled after its end");
                Poll::Ready(body())
            }
        }
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The activity as a worker registers it.
pub(crate) fn served<A: ActivityType>(receiver: Arc<A::Receiver>, layers: &Layers) -> Activity {
    let layers = layers.clone();
    let attempt = move |ctx, input| {
        let input = A::decode(input, &layers.converter)?;
        let ctx = layers.activity_ctx(ctx);
        Ok::<_, Failure>((A::attempt(&receiver, ctx, input), layers.converter.clone()))
    };
    match A::BLOCKING {
        true => Activity::blocking(A::NAME, move |ctx, input| {
            let (attempt, converter) = attempt(ctx, input)?;
            converter.encode(&attempt.wait().map_err(A::failure)?)
        }),
        false => Activity::new(A::NAME, move |ctx, input| {
            let attempt = attempt(ctx, input);
            async move {
                let (attempt, converter) = attempt?;
                converter.encode(&attempt.await.map_err(A::failure)?)
            }
        }),
    }
}
