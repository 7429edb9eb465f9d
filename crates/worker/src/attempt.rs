//! One attempt of an activity: code that runs once, and the grip of whoever waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use dacapo_core::{Failure, Payload};
use tokio::task::AbortHandle;

use crate::{Activity, ActivityBody, ActivityCtx, ActivityFuture};

type Done = Box<dyn FnOnce(Result<Payload, Failure>) + Send>;

/// An attempt that is about to run.
pub struct Attempt {
    code: AttemptCode,
    grip: Grip,
}

/// The code of an attempt, ready to run.
pub enum AttemptCode {
    /// To be polled.
    Async(ActivityFuture),
    /// To be called, on a thread that may block.
    Blocking(Box<dyn FnOnce() -> Result<Payload, Failure> + Send>),
}

/// A hold on an attempt, for whoever waits for it: to ask it to stop, or to give up on it.
#[derive(Clone)]
pub struct Grip {
    ctx: ActivityCtx,
    state: Arc<Mutex<State>>,
}

/// Whoever comes first has the say: the attempt with its result, or somebody who gives up on it.
struct State {
    done: Option<Done>,
    task: Option<AbortHandle>,
}

impl Attempt {
    /// An attempt of an activity. `done` is told once what it came to, unless it is given up on before.
    pub fn new(
        activity: &Activity,
        ctx: ActivityCtx,
        input: Vec<Payload>,
        done: impl FnOnce(Result<Payload, Failure>) + Send + 'static,
    ) -> Self {
        let grip = Grip::new(ctx.clone(), Box::new(done));
        let code = match activity.body() {
            ActivityBody::Async(body) => {
                let body = body.clone();
                AttemptCode::Async(Box::pin(caught(async move { body(ctx, input).await })))
            }
            ActivityBody::Blocking(body) => {
                let body = body.clone();
                AttemptCode::Blocking(Box::new(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| body(ctx, input)));
                    result.unwrap_or_else(|panic| Err(panicked(panic)))
                }))
            }
        };
        Self { code, grip }
    }

    /// An attempt that is a future by itself: a closure of a workflow.
    pub fn of_future(
        ctx: ActivityCtx,
        future: ActivityFuture,
        done: impl FnOnce(Result<Payload, Failure>) + Send + 'static,
    ) -> Self {
        let grip = Grip::new(ctx, Box::new(done));
        Self { code: AttemptCode::Async(Box::pin(caught(future))), grip }
    }

    /// A hold on it.
    pub fn grip(&self) -> Grip {
        self.grip.clone()
    }

    /// Its code, and the hold by which its result is told.
    pub fn into_parts(self) -> (AttemptCode, Grip) {
        (self.code, self.grip)
    }
}

impl Grip {
    fn new(ctx: ActivityCtx, done: Done) -> Self {
        Self { ctx, state: Arc::new(Mutex::new(State { done: Some(done), task: None })) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attempt came to this.
    pub fn finish(&self, result: Result<Payload, Failure>) {
        let done = self.lock().done.take();
        if let Some(done) = done {
            done(result);
        }
    }

    /// The task that runs it. If it was given up on meanwhile, the task ends.
    pub(crate) fn runs_as(&self, task: AbortHandle) {
        let mut state = self.lock();
        match state.done {
            Some(_) => state.task = Some(task),
            None => task.abort(),
        }
    }

    /// Whether its result was told, or nobody wants it.
    pub fn is_given_up(&self) -> bool {
        self.lock().done.is_none()
    }

    /// What the attempt sees.
    pub fn ctx(&self) -> &ActivityCtx {
        &self.ctx
    }

    /// Asks the attempt to stop. It may go on, and what it comes to still counts.
    pub fn cancel(&self, reason: &str) {
        self.ctx.cancel(reason);
    }

    /// Gives up on the attempt: it is asked to stop, is dropped at its next await, and what it comes to is nobody's.
    pub fn give_up(&self, reason: &str) {
        let mut state = self.lock();
        let (done, task) = (state.done.take(), state.task.take());
        drop(state);
        drop(done);
        self.ctx.cancel(reason);
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// The future, with a panic as a failure that is worth another try.
async fn caught(future: impl Future<Output = Result<Payload, Failure>>) -> Result<Payload, Failure> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |cx| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panicked(panic))))
    })
    .await
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> Failure {
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "no message".to_owned());
    Failure::application(format!("the activity panicked: {message}")).typed("Panic")
}
