//! The running parts of an attempt: its code, and the tasks that its code started. The tasks end with the code, however
//! it ends, and the attempt has ended when nothing of it runs any more.
//!
//! The attempt's result does not wait for the tasks: one that neither returns nor awaits would hold it up. Such a task
//! is still a part of the attempt, so that a termination of the attempt ends only when that task has ended too.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dacapo_sync::{Mutex, MutexGuard, ranks};
use tokio::task::{AbortHandle, JoinHandle};

type Hook = Box<dyn FnOnce() + Send>;

/// The attempt's code among its parts.
const CODE: u64 = 0;

/// All parts of one attempt.
pub(crate) struct AttemptParts(Mutex<State>);

impl Default for AttemptParts {
    fn default() -> Self {
        Self(Mutex::new(ranks::ATTEMPT_PARTS, State::default()))
    }
}

#[derive(Default)]
struct State {
    /// Whether the attempt is over: no part can be added, and the tasks were aborted.
    closed: bool,
    last: u64,
    /// The parts that run. A task that is being started has no handle yet.
    parts: BTreeMap<u64, Option<AbortHandle>>,
    hooks: Vec<Hook>,
}

impl State {
    fn has_ended(&self) -> bool {
        self.closed && self.parts.is_empty()
    }
}

impl AttemptParts {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Adds the attempt's code, which is about to run. It has ended when the part is dropped.
    pub(crate) fn code(self: &Arc<Self>) -> AttemptPart {
        self.lock().parts.insert(CODE, None);
        AttemptPart { parts: self.clone(), no: CODE }
    }

    /// Starts a task. If the attempt is over, the task never runs.
    pub(crate) fn spawn<F>(self: &Arc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Some(part) = self.new_part() else {
            drop(future);
            let never = tokio::spawn(std::future::pending());
            never.abort();
            return never;
        };
        let no = part.no;
        // Not under the lock, and neither is the abort: a runtime that shuts down drops the task at once.
        let task = tokio::spawn(Task { future: Box::pin(future), _part: part });
        let mut state = self.lock();
        let closed = state.closed;
        if let Some(handle) = state.parts.get_mut(&no).filter(|_| !closed) {
            *handle = Some(task.abort_handle());
        }
        drop(state);
        if closed {
            task.abort();
        }
        task
    }

    fn new_part(self: &Arc<Self>) -> Option<AttemptPart> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.last += 1;
        let no = state.last;
        state.parts.insert(no, None);
        Some(AttemptPart { parts: self.clone(), no })
    }

    /// Closes the attempt: its tasks end at their next await.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let tasks: Vec<AbortHandle> = state.parts.values_mut().filter_map(Option::take).collect();
        let hooks = if state.has_ended() { std::mem::take(&mut state.hooks) } else { Vec::new() };
        drop(state);
        tasks.iter().for_each(AbortHandle::abort);
        hooks.into_iter().for_each(|hook| hook());
    }

    /// Returns whether nothing of the attempt runs any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended()
    }

    /// Calls `hook` when nothing of the attempt runs any more; at once, if that is so already.
    pub(crate) fn on_end(&self, hook: Hook) {
        let mut state = self.lock();
        match state.has_ended() {
            true => {
                drop(state);
                hook();
            }
            false => state.hooks.push(hook),
        }
    }

    /// Returns whether the code runs, and how many tasks.
    pub(crate) fn running(&self) -> (bool, usize) {
        let state = self.lock();
        let code = state.parts.contains_key(&CODE);
        (code, state.parts.len() - usize::from(code))
    }
}

/// One part of an attempt, until it is dropped.
pub(crate) struct AttemptPart {
    parts: Arc<AttemptParts>,
    no: u64,
}

impl Drop for AttemptPart {
    fn drop(&mut self) {
        let mut state = self.parts.lock();
        state.parts.remove(&self.no);
        let over = self.no == CODE || state.has_ended();
        drop(state);
        if over {
            self.parts.close();
        }
    }
}

/// A task of an attempt. The future is dropped first, so that the part outlives all that the task owned.
struct Task<F> {
    future: Pin<Box<F>>,
    _part: AttemptPart,
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.future.as_mut().poll(cx)
    }
}
