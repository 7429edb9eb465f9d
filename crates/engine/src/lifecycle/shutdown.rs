//! Shutting down with manners: nothing new begins, what runs may end, then it is asked to stop, then it is left behind.
//!
//! ```text
//!   shut_down ──▶ Draining ──(grace period is over)──▶ Stopping ──(force timeout is over)──▶ cut off
//!                    │                                    │                                     │
//!                    └────────── nothing runs ────────────┴─────────────────────────────────────┴──▶ stopped
//! ```
//!
//! Every queue goes by its own times, all of them at once. Code that was asked to stop before is waited for as well, for as
//! long as its queue says. What is cut off is in the store as it was: the next process tries it again at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dacapo_core::{Name, Timestamp};
use dacapo_worker::{Ailing, QueueValues, Wait};
use tokio::sync::oneshot;

use crate::activity::task_queue::{PendingActivity, TaskState};
use crate::inner::Inner;
use crate::report::log as loud;
use crate::run::cache::holds_nothing;
use crate::run::cached_run::Stage;
use crate::timer::wheel::Due;
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
    /// Code that was asked to stop before the shutdown and still runs.
    pub left: Vec<Ailing>,
    /// What is wrong with the store, if anything is: what was acknowledged may not be where it should.
    pub store: Option<EngineError>,
}

/// How many attempts are named when it is said what is waited for.
const SHOWN: usize = 5;

/// A shutdown that is under way.
pub(crate) struct Drain {
    began: Timestamp,
    asked_to_stop: usize,
    /// Queues whose grace period is over.
    stopping: BTreeSet<Name>,
    /// Queues whose attempts were left behind.
    done: BTreeSet<Name>,
    cut_off: Vec<PendingActivity>,
    /// Whether it is over, and only the last commit is waited for.
    is_over: bool,
    tell: Vec<oneshot::Sender<ShutdownReport>>,
}

impl Engine {
    /// Shuts down: begins no attempt any more, lets those that run end for as long as the grace period of their queue, asks
    /// the rest to stop and waits for that as long as the force timeout, and then stops. Turns go on meanwhile, so that
    /// results are recorded. Whoever asks while it shuts down waits for the same end.
    pub fn shut_down(&self) -> impl Future<Output = ShutdownReport> + Send + use<> {
        let (tell, told) = oneshot::channel();
        self.inner.begin_drain(Some(tell));
        // Whoever comes after the end has nothing to wait for.
        async move { told.await.unwrap_or_default() }
    }

    /// Says what a shutdown that begins now will wait for, if there is anything.
    pub fn tell_what_ends(&self) {
        let inner = &self.inner;
        let mut running: Vec<String> =
            inner.desk().grips().map(|grip| grip.ctx().info().activity.to_string()).collect();
        running.extend(inner.locals().grips().map(|grip| grip.ctx().info().activity.to_string()));
        if running.is_empty() {
            return;
        }
        let longest = |time: fn(&QueueValues) -> Duration| inner.workers().map(|worker| time(worker.values())).max();
        let grace = longest(|values| values.shutdown_grace_period).unwrap_or_default();
        let force = longest(|values| values.shutdown_force_timeout).unwrap_or_default();
        let (count, most) = (running.len(), running.len().min(SHOWN));
        let (named, more) = (running[..most].join(", "), if count > most { ", …" } else { "" });
        loud::news(&format_args!(
            "it was asked to end and waits for {count} attempts ({named}{more}): for up to {grace:?}, and for {force:?} more \
             once they are asked to stop. Asked again, it ends at once"
        ));
    }

    /// Whether the engine is shutting down or has stopped.
    pub fn is_shutting_down(&self) -> bool {
        self.inner.is_draining() || self.inner.trouble().is_some()
    }
}

impl Inner {
    pub(crate) fn begin_drain(self: &Arc<Self>, tell: Option<oneshot::Sender<ShutdownReport>>) {
        let began = self.host.now();
        let mut drain = self.drain();
        if self.trouble().is_some() {
            return;
        }
        if let Some(drain) = &mut *drain {
            return drain.tell.extend(tell);
        }
        *drain = Some(Drain {
            began,
            asked_to_stop: 0,
            stopping: BTreeSet::new(),
            done: BTreeSet::new(),
            cut_off: Vec::new(),
            is_over: false,
            tell: tell.into_iter().collect(),
        });
        drop(drain);
        self.flush_held();
        for worker in self.workers() {
            let (queue, values) = (worker.queue(), worker.values());
            let asked = began.after(values.shutdown_grace_period);
            self.own_timer(asked, Due::AskToStop(queue.clone()));
            self.own_timer(asked.after(values.shutdown_force_timeout), Due::CutOff(queue.clone()));
            self.own_timer(began.after(values.zombie_shutdown_timeout), Due::StopWaiting);
        }
        self.drained();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain().is_some()
    }

    /// Whether attempts of this queue have been asked to stop because of a shutdown: how they fail then is not their fault.
    pub(crate) fn is_stopping(&self, queue: &Name) -> bool {
        self.drain().as_ref().is_some_and(|drain| drain.stopping.contains(queue))
    }

    /// Ends a shutdown if nothing runs any more that is waited for.
    pub(crate) fn drained(self: &Arc<Self>) {
        let Some((began, all_cut_off)) =
            self.drain().as_ref().map(|drain| (drain.began, drain.done.len() == self.workers().count()))
        else {
            return;
        };
        if self.unwritten.load(Ordering::Acquire) > 0 {
            return;
        }
        if !all_cut_off && (self.desk().running().next().is_some() || self.locals().is_busy() || self.is_playing()) {
            return;
        }
        let now = self.host.now();
        let waits = |wait: Wait| matches!(wait, Wait::Until(_));
        if !self.workers().any(|worker| waits(worker.wait(began, now))) {
            self.end_drain();
        }
    }

    fn is_playing(&self) -> bool {
        let lives = self.runs().all();
        lives.iter().any(|live| {
            let state = live.lock();
            !matches!(state.stage, Stage::Idle | Stage::Parked) || !holds_nothing(&state)
        })
    }

    /// Turns that were held back for local work are committed now: what woke them must not be done again.
    fn flush_held(self: &Arc<Self>) {
        let lives = self.runs().all();
        for live in lives {
            let mut state = live.lock();
            if state.body.as_ref().is_some_and(|body| !body.held.is_empty()) {
                state.flush = true;
                self.wake(&live, &mut state);
            }
        }
    }

    /// The grace period of a queue is over.
    pub(crate) fn ask_to_stop(self: &Arc<Self>, queue: &Name) {
        let mut grips: Vec<_> = self.desk().grips().cloned().collect();
        grips.extend(self.locals().grips());
        grips.retain(|grip| grip.ctx().info().queue == *queue);
        if let Some(drain) = &mut *self.drain() {
            drain.stopping.insert(queue.clone());
            drain.asked_to_stop += grips.len();
        }
        for grip in grips {
            grip.cancel("the worker shuts down");
        }
        self.drained();
    }

    /// Nobody waits any longer for what runs of a queue.
    pub(crate) fn cut_off(self: &Arc<Self>, queue: &Name) {
        let tasks = self.desk().take_running(queue);
        self.note_reports(&tasks);
        let mut grips: Vec<_> = tasks.iter().filter_map(|task| task.grip()).collect();
        grips.extend(self.locals().take_queue(queue));
        if let Some(drain) = &mut *self.drain() {
            drain.cut_off.extend(tasks.iter().map(PendingActivity::of));
            drain.done.insert(queue.clone());
        }
        for grip in grips {
            grip.give_up("the worker has shut down");
        }
        self.drained();
    }

    /// Nobody waits any longer, or nothing is left to wait for.
    fn end_drain(self: &Arc<Self>) {
        // It stays until the engine has stopped: nothing may begin in between.
        if self.drain().as_mut().is_none_or(|drain| std::mem::replace(&mut drain.is_over, true)) {
            return;
        }
        let left: Vec<Ailing> = self.workers().flat_map(|worker| worker.health().entities).collect();
        for Ailing { entity, since, place, .. } in &left {
            tracing::warn!(%entity, %since, place, "the shutdown waits no longer for code that was asked to stop");
        }
        let store = self.end();
        self.report_drain(left, store);
    }

    /// The engine has stopped for another reason: whoever waits for the end of a shutdown has it.
    pub(crate) fn break_off_drain(&self) {
        if self.drain().as_ref().is_some_and(|drain| !drain.is_over) {
            self.report_drain(Vec::new(), None);
        }
    }

    fn report_drain(&self, left: Vec<Ailing>, store: Option<EngineError>) {
        let Some(Drain { began, asked_to_stop, cut_off, tell, .. }) = self.drain().take() else { return };
        let report = ShutdownReport { took: self.host.now().since(began), asked_to_stop, cut_off, left, store };
        for tell in tell {
            let _ = tell.send(report.clone());
        }
    }
}

impl crate::activity::task_queue::Task {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, TaskState::Running(_))
    }
}
