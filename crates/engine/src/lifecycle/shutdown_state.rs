//! The state of a graceful shutdown.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dacapo_client::{Error, PendingActivity};
use dacapo_core::Name;
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{Drain, StoppingCode};
use tokio::sync::oneshot;

use crate::host::Steady;

/// The report of a shutdown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShutdownReport {
    /// The time that it took.
    pub took: Duration,
    /// The number of attempts that were asked to stop because the grace period was over.
    pub asked_to_stop: usize,
    /// Activities whose attempts did not end. The next process tries them again at once.
    pub cut_off: Vec<PendingActivity>,
    /// Code that was asked to stop before the shutdown and still runs.
    pub left: Vec<StoppingCode>,
    /// The error of the store, or of the cluster that handed out no more tasks, if there is one. After an error of the store
    /// acknowledged work may not be where it should be.
    pub error: Option<dacapo_client::Error>,
}

/// The state of a shutdown: whether it has begun, and how far it is.
pub(crate) struct ShutdownState {
    /// Read with every turn and every attempt.
    has_begun: AtomicBool,
    state: Mutex<Option<Shutdown>>,
    /// The number of writes that a shutdown waits for.
    unwritten: AtomicUsize,
}

struct Shutdown {
    drain: Drain,
    asked_to_stop: usize,
    cut_off: Vec<PendingActivity>,
    /// Whether the shutdown is over, and waits only for the last commit.
    is_over: bool,
    waiters: Vec<oneshot::Sender<ShutdownReport>>,
}

impl ShutdownState {
    pub(crate) fn new() -> Self {
        Self {
            has_begun: AtomicBool::new(false),
            state: Mutex::new(ranks::SHUTDOWN, None),
            unwritten: AtomicUsize::new(0),
        }
    }

    /// Begins a shutdown, unless one has begun. Returns its times if this call began it.
    pub(crate) fn begin(&self, now: Steady, waiter: Option<oneshot::Sender<ShutdownReport>>) -> Option<Drain> {
        let mut state = self.state.lock();
        if let Some(shutdown) = &mut *state {
            shutdown.waiters.extend(waiter);
            return None;
        }
        self.has_begun.store(true, Ordering::Release);
        let drain = Drain::new(now.0);
        *state = Some(Shutdown {
            drain: drain.clone(),
            asked_to_stop: 0,
            cut_off: Vec::new(),
            is_over: false,
            waiters: waiter.into_iter().collect(),
        });
        Some(drain)
    }

    /// Whether a shutdown has begun. It never ends but with the engine.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Whether attempts of this queue have been asked to stop because of a shutdown: a failure then does not count
    /// against them.
    pub(crate) fn is_stopping(&self, queue: &Name) -> bool {
        self.has_begun() && self.state.lock().as_ref().is_some_and(|shutdown| shutdown.drain.is_stopping(queue))
    }

    /// Notes that so many attempts of a queue are asked to stop.
    pub(crate) fn ask_to_stop(&self, queue: &Name, attempts: usize) {
        if let Some(shutdown) = &mut *self.state.lock() {
            shutdown.drain.ask_to_stop(queue);
            shutdown.asked_to_stop += attempts;
        }
    }

    /// Notes that the attempts of a queue are cut off.
    pub(crate) fn cut_off(&self, queue: &Name, activities: impl Iterator<Item = PendingActivity>) {
        if let Some(shutdown) = &mut *self.state.lock() {
            shutdown.cut_off.extend(activities);
            shutdown.drain.cut_off(queue);
        }
    }

    /// The shutdown that has begun and is not over, if there is one.
    pub(crate) fn waiting(&self) -> Option<Drain> {
        if !self.has_begun() {
            return None;
        }
        self.state.lock().as_ref().filter(|shutdown| !shutdown.is_over).map(|shutdown| shutdown.drain.clone())
    }

    /// Whether a write that a shutdown waits for has not ended.
    pub(crate) fn is_writing(&self) -> bool {
        self.unwritten.load(Ordering::Acquire) > 0
    }

    /// Ends the shutdown; false if it was over before. Its state stays until the engine has stopped: nothing may begin
    /// in between.
    pub(crate) fn end(&self) -> bool {
        self.state.lock().as_mut().is_some_and(|shutdown| !std::mem::replace(&mut shutdown.is_over, true))
    }

    /// Answers callers that wait for the end of a shutdown, because the engine has stopped for another reason.
    pub(crate) fn break_off(&self, now: Steady, error: Option<Error>) {
        let goes_on = self.state.lock().as_ref().is_some_and(|shutdown| !shutdown.is_over);
        if goes_on {
            self.report(now, Vec::new(), error);
        }
    }

    /// Answers callers that wait for the end of a shutdown with its report.
    pub(crate) fn report(&self, now: Steady, left: Vec<StoppingCode>, error: Option<Error>) {
        let Some(Shutdown { drain, asked_to_stop, cut_off, waiters, .. }) = self.state.lock().take() else { return };
        let report = ShutdownReport { took: now.0.since(drain.began()), asked_to_stop, cut_off, left, error };
        for waiter in waiters {
            let _ = waiter.send(report.clone());
        }
    }

    /// Notes that a write begins that a shutdown waits for.
    pub(crate) fn begin_write(&self) {
        self.unwritten.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that such a write has ended.
    pub(crate) fn end_write(&self) {
        self.unwritten.fetch_sub(1, Ordering::AcqRel);
    }
}
