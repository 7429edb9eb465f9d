//! One attempt of an activity: code that runs once, and the handle by which the engine controls it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread::Thread;
use std::time::Instant;

use dacapo_core::{Failure, Payload, panic_place};
use dacapo_sync::{Mutex, MutexGuard, ranks};
use tokio::task::AbortHandle;
use tracing::{Instrument, Span};

use crate::attempt_parts::AttemptPart;
use crate::{Activity, ActivityCode, ActivityCtx, ActivityFuture, AttemptMeters};

type Done = Box<dyn FnOnce(Result<Payload, Failure>) + Send>;

/// An attempt that is about to run.
pub struct Attempt {
    code: AttemptCode,
    handle: AttemptHandle,
}

/// The code of an attempt, ready to run.
pub enum AttemptCode {
    /// A future to be polled.
    Async(ActivityFuture),
    /// A function to be called, on a thread that may block.
    Blocking(Box<dyn FnOnce() -> Result<Payload, Failure> + Send>),
}

/// The attempt as the engine sees it: the handle asks it to stop, or gives up on it.
#[derive(Clone)]
pub struct AttemptHandle {
    ctx: ActivityCtx,
    state: Arc<Mutex<State>>,
}

/// The shared state of an attempt. The first to take `done` ends it: the attempt with its result, or the engine that
/// gives up on it.
struct State {
    done: Option<Done>,
    /// The meters that count the attempt, and when it began.
    meters: Option<(Arc<AttemptMeters>, Instant)>,
    task: Option<AbortHandle>,
    /// The thread on which it blocks.
    thread: Option<Thread>,
    /// Whether the engine has given up on it.
    let_go: bool,
}

impl Attempt {
    /// Creates an attempt of an activity. `done` is called once with the result, unless the attempt is given up on
    /// before.
    pub fn new(
        activity: &Activity,
        ctx: ActivityCtx,
        input: Vec<Payload>,
        done: impl FnOnce(Result<Payload, Failure>) + Send + 'static,
    ) -> Self {
        let handle = AttemptHandle::new(ctx.clone(), Box::new(done));
        let (part, span) = (ctx.parts().code(), span(&ctx));
        let code = match activity.code() {
            ActivityCode::Async(body) => {
                let body = body.clone();
                let run: ActivityFuture = Box::pin(async move { body(ctx, input).await });
                let code = Code { run, _part: part };
                AttemptCode::Async(Box::pin(caught(code.run_to_end()).instrument(span)))
            }
            ActivityCode::Blocking(body) => {
                let (body, state) = (body.clone(), handle.state.clone());
                let code = Code { run: move || body(ctx, input), _part: part };
                AttemptCode::Blocking(Box::new(move || span.in_scope(|| on_this_thread(&state, code))))
            }
        };
        Self { code, handle }
    }

    /// Creates an attempt of a future: a closure of a workflow.
    pub fn of_future(
        ctx: ActivityCtx,
        future: ActivityFuture,
        done: impl FnOnce(Result<Payload, Failure>) + Send + 'static,
    ) -> Self {
        let code = Code { run: future, _part: ctx.parts().code() };
        let span = span(&ctx);
        let handle = AttemptHandle::new(ctx, Box::new(done));
        Self { code: AttemptCode::Async(Box::pin(caught(code.run_to_end()).instrument(span))), handle }
    }

    /// Lets these meters count the attempt once, when it is over or the engine gives up on it.
    #[must_use]
    pub fn counted_by(self, meters: &Arc<AttemptMeters>) -> Self {
        self.handle.lock().meters = Some((meters.clone(), Instant::now()));
        self
    }

    /// Returns the attempt's handle.
    pub fn handle(&self) -> AttemptHandle {
        self.handle.clone()
    }

    /// Returns the code, and the handle that takes its result.
    pub fn into_parts(self) -> (AttemptCode, AttemptHandle) {
        (self.code, self.handle)
    }
}

impl AttemptHandle {
    fn new(ctx: ActivityCtx, done: Done) -> Self {
        Self {
            ctx,
            state: Arc::new(Mutex::new(
                ranks::ATTEMPT,
                State { done: Some(done), meters: None, task: None, thread: None, let_go: false },
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends the attempt with this result.
    pub fn finish(&self, result: Result<Payload, Failure>) {
        if let Some(done) = self.take_done(Some(&result)) {
            done(result);
        }
    }

    /// Takes `done`, for the first that ends the attempt, and counts the attempt.
    fn take_done(&self, result: Option<&Result<Payload, Failure>>) -> Option<Done> {
        let mut state = self.lock();
        let (done, meters) = (state.done.take(), state.meters.take());
        drop(state);
        if let Some((meters, began)) = meters {
            meters.attempt_over(began, result, result.is_some_and(|result| self.ctx.is_left_to_others(result)));
        }
        done
    }

    /// Sets the task that runs the attempt. If the engine has given up on it meanwhile, the task ends.
    pub(crate) fn runs_as(&self, task: AbortHandle) {
        let mut state = self.lock();
        let given_up = state.done.is_none();
        state.task = Some(task.clone());
        drop(state);
        if given_up {
            task.abort();
        }
    }

    /// Returns whether the result was delivered, or the engine has given up on it.
    pub fn is_given_up(&self) -> bool {
        self.lock().done.is_none()
    }

    /// Returns the attempt's ctx.
    pub fn ctx(&self) -> &ActivityCtx {
        &self.ctx
    }

    /// Asks the attempt to stop. It may go on, and its result still counts.
    pub fn cancel(&self, reason: &str) {
        self.ctx.cancel(reason);
    }

    /// Stops the attempt wherever it can be stopped: its task and those that it started are dropped at their next
    /// await, and a parked thread is woken so that it sees the cancellation. Code that does neither runs on; no thread
    /// is ever killed. Can be called again.
    pub fn interrupt(&self) {
        let state = self.lock();
        let (task, thread) = (state.task.clone(), state.thread.clone());
        drop(state);
        self.ctx.parts().close();
        if let Some(task) = task {
            task.abort();
        }
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// Returns whether nothing of the attempt runs any more, neither its code nor a task that it started.
    pub fn has_ended(&self) -> bool {
        self.ctx.parts().has_ended()
    }

    /// Calls `hook` once nothing of the attempt runs any more; at once, if that is so already. The thread that ends the
    /// last part calls it.
    pub fn on_end(&self, hook: impl FnOnce() + Send + 'static) {
        self.ctx.parts().on_end(Box::new(hook));
    }

    /// Describes where the attempt is, as far as is known.
    pub fn place(&self) -> String {
        let attempt = self.ctx.info().attempt;
        let (code, tasks) = self.ctx.parts().running();
        let code = match (code, &self.lock().thread) {
            (false, _) => "its code has ended".to_owned(),
            (true, None) => "a task of the runtime".to_owned(),
            (true, Some(thread)) => {
                format!("on thread {} ({:?})", thread.name().unwrap_or("without a name"), thread.id())
            }
        };
        let tasks = match tasks {
            0 => String::new(),
            1 => ", one task that it started runs".to_owned(),
            tasks => format!(", {tasks} tasks that it started run"),
        };
        format!("attempt {attempt}, {code}{tasks}")
    }

    /// Drops the attempt's result from now on. Returns whether this was the first such call.
    pub fn let_go(&self) -> bool {
        drop(self.take_done(None));
        !std::mem::replace(&mut self.lock().let_go, true)
    }

    /// Gives up on the attempt: it is asked to stop, is dropped at its next await, and its result is dropped.
    pub fn give_up(&self, reason: &str) {
        self.let_go();
        self.ctx.cancel(reason);
        self.interrupt();
    }
}

/// Returns the span in which the code of an attempt runs. It has no parent: an attempt outlives the caller that asked
/// for it.
fn span(ctx: &ActivityCtx) -> Span {
    let info = ctx.info();
    tracing::info_span!(
        target: "dacapo",
        parent: None,
        "attempt",
        activity = %info.activity,
        activity_id = %info.activity_id,
        attempt = info.attempt,
        workflow_id = %info.workflow_id,
        run_id = %info.run_id,
        queue = %info.queue,
    )
}

/// The code of an attempt and its place among the attempt's parts, in the order in which they are dropped.
struct Code<C> {
    run: C,
    _part: AttemptPart,
}

impl Code<ActivityFuture> {
    async fn run_to_end(mut self) -> Result<Payload, Failure> {
        self.run.as_mut().await
    }
}

/// Runs blocking code, on a thread that the handle can find meanwhile.
fn on_this_thread(
    state: &Mutex<State>,
    code: Code<impl FnOnce() -> Result<Payload, Failure>>,
) -> Result<Payload, Failure> {
    state.lock().thread = Some(std::thread::current());
    let Code { run, _part } = code;
    let result = catch_unwind(AssertUnwindSafe(run));
    state.lock().thread = None;
    result.unwrap_or_else(|panic| Err(panicked(panic)))
}

/// Wraps a future, so that a panic becomes a failure that may be retried.
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
    let place = panic_place(&*panic).map_or_else(String::new, |place| format!(", at {place}"));
    Failure::application(format!("the activity panicked: {message}{place}")).typed("Panic")
}
