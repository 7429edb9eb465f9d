//! Shutting down with manners: nothing new begins, what runs may end, then it is asked to stop, then it is left behind.
//!
//! ```text
//!   shut_down ──▶ Draining ──(grace period is over)──▶ Stopping ──(force timeout is over)──▶ stopped, with what was cut off
//!                    │                                    │
//!                    └────────── nothing runs ────────────┴──────────────────────────────▶ stopped
//! ```
//!
//! What is cut off is in the store as it was: the next process tries it again at once.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::Timestamp;
use tokio::sync::oneshot;

use crate::desk::{PendingActivity, TaskState};
use crate::inner::Inner;
use crate::live::Stage;
use crate::timers::Due;
use crate::{Engine, EngineError};

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShutdownReport {
    /// How long it took.
    pub took: Duration,
    /// Attempts that were asked to stop because the grace period was over.
    pub asked_to_stop: usize,
    /// Activities whose attempts did not end. The next process tries them again at once.
    pub cut_off: Vec<PendingActivity>,
}

/// A shutdown that is under way.
pub(crate) struct Drain {
    began: Timestamp,
    asked_to_stop: usize,
    is_stopping: bool,
    tell: oneshot::Sender<ShutdownReport>,
}

impl Engine {
    /// Shuts down: begins no attempt any more, lets those that run end for as long as the grace period, asks the rest to
    /// stop and waits for that as long as the force timeout, and then stops. Turns go on meanwhile, so that results are
    /// recorded.
    pub fn shut_down(&self, grace: Duration, force: Duration) -> impl Future<Output = ShutdownReport> + Send + use<> {
        let (tell, told) = oneshot::channel();
        let began = self.inner.host.now();
        let mut drain = self.inner.drain();
        if drain.is_none() && self.inner.trouble().is_none() {
            *drain = Some(Drain { began, asked_to_stop: 0, is_stopping: false, tell });
            drop(drain);
            self.inner.own_timer(began.after(grace), Due::AskToStop);
            self.inner.own_timer(began.after(grace).after(force), Due::CutOff);
            self.inner.drained();
        }
        // Whoever comes second, or after the end, has nothing to wait for.
        async move { told.await.unwrap_or_default() }
    }

    /// Whether the engine is shutting down or has stopped.
    pub fn is_shutting_down(&self) -> bool {
        self.inner.is_draining() || self.inner.trouble().is_some()
    }
}

impl Inner {
    pub(crate) fn is_draining(&self) -> bool {
        self.drain().is_some()
    }

    /// Whether attempts have been asked to stop because of a shutdown: how they fail then is not their fault.
    pub(crate) fn is_stopping(&self) -> bool {
        self.drain().as_ref().is_some_and(|drain| drain.is_stopping)
    }

    /// Ends a shutdown if nothing runs any more.
    pub(crate) fn drained(self: &Arc<Self>) {
        if !self.is_draining() || self.desk().running().next().is_some() || self.locals().is_busy() {
            return;
        }
        let lives = self.runs().all();
        let at_rest = |stage| matches!(stage, Stage::Idle | Stage::Parked);
        if lives.iter().all(|live| at_rest(live.lock().stage)) {
            self.end_drain();
        }
    }

    /// The grace period is over.
    pub(crate) fn ask_to_stop(self: &Arc<Self>) {
        let grips: Vec<_> = self.desk().grips().cloned().collect();
        if let Some(drain) = &mut *self.drain() {
            drain.is_stopping = true;
            drain.asked_to_stop = grips.len();
        }
        for grip in grips {
            grip.cancel("the worker shuts down");
        }
        self.drained();
    }

    /// Nobody waits any longer, or nothing is left to wait for.
    pub(crate) fn end_drain(self: &Arc<Self>) {
        let Some(Drain { began, asked_to_stop, tell, .. }) = self.drain().take() else { return };
        let cut_off: Vec<_> = self.desk().running().map(PendingActivity::of).collect();
        let took = self.host.now().since(began);
        self.halt(EngineError::ShutDown);
        self.store.close();
        let _ = tell.send(ShutdownReport { took, asked_to_stop, cut_off });
    }
}

impl crate::desk::Task {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, TaskState::Running(_))
    }
}
