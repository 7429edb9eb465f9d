//! Attempts of activities, as tasks of the program's runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use dacapo_core::{Failure, Payload};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::{Activity, ActivityBody, ActivityCtx, ActivityFuture};

/// Runs attempts on a runtime.
#[derive(Clone, Debug)]
pub struct Attempts {
    runtime: Handle,
}

/// An attempt that runs.
pub struct Running {
    ctx: ActivityCtx,
    task: AbortHandle,
    done: Arc<Once>,
}

type Done = Box<dyn FnOnce(Result<Payload, Failure>) + Send>;

/// Whoever comes first has the say: the attempt with its result, or somebody who gives up on it.
struct Once(Mutex<Option<Done>>);

impl Once {
    fn take(&self) -> Option<Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Attempts {
    /// Attempts on this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime }
    }

    /// Starts an attempt. `done` is told once what it came to, unless it is given up on before.
    pub fn start(
        &self,
        activity: &Activity,
        ctx: ActivityCtx,
        input: Vec<Payload>,
        done: impl FnOnce(Result<Payload, Failure>) + Send + 'static,
    ) -> Running {
        let done = Arc::new(Once(Mutex::new(Some(Box::new(done)))));
        let task = match activity.body() {
            ActivityBody::Async(body) => {
                let (body, ctx, done) = (body.clone(), ctx.clone(), done.clone());
                self.runtime.spawn(async move { finish(&done, caught(async move { body(ctx, input).await }).await) })
            }
            ActivityBody::Blocking(body) => {
                let (body, ctx, done) = (body.clone(), ctx.clone(), done.clone());
                self.runtime.spawn_blocking(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| body(ctx, input)));
                    finish(&done, result.unwrap_or_else(|panic| Err(panicked(panic))));
                })
            }
        };
        Running { ctx, task: task.abort_handle(), done }
    }

    /// Starts a future that is an attempt by itself: a closure of the workflow.
    pub fn start_future(
        &self,
        ctx: ActivityCtx,
        future: ActivityFuture,
        done: impl FnOnce(Result<Payload, Failure>) + Send + 'static,
    ) -> Running {
        let done = Arc::new(Once(Mutex::new(Some(Box::new(done)))));
        let told = done.clone();
        let task = self.runtime.spawn(async move { finish(&told, caught(future).await) });
        Running { ctx, task: task.abort_handle(), done }
    }
}

impl Running {
    /// Asks the attempt to stop. It may go on, and what it comes to still counts.
    pub fn cancel(&self, reason: &str) {
        self.ctx.cancel(reason);
    }

    /// Gives up on the attempt: it is asked to stop, is dropped at its next await, and what it comes to is nobody's.
    pub fn give_up(&self, reason: &str) {
        drop(self.done.take());
        self.ctx.cancel(reason);
        self.task.abort();
    }
}

fn finish(done: &Once, result: Result<Payload, Failure>) {
    if let Some(done) = done.take() {
        done(result);
    }
}

/// The future, with a panic as a failure that is worth another try.
async fn caught(future: impl Future<Output = Result<Payload, Failure>>) -> Result<Payload, Failure> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |cx| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|panic| std::task::Poll::Ready(Err(panicked(panic))))
    })
    .await
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> Failure {
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "no message".to_owned());
    Failure::application(format!("the activity panicked: {message}")).typed("Panic")
}
