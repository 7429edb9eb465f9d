//! Local work: local activities and `run` closures. It runs in the process that plays the run, between turns, and is
//! recorded by the commit that takes its result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{
    ActivityFailed, Failure, FailureKind, Name, Outcome, Payload, Resolution, Retry, RetryState, ScheduleLocalActivity,
    ScheduleRun, Seq, TimeoutKind, Timeouts, Timestamp,
};
use dacapo_store::{Doing, RunNo};
use dacapo_worker::{ActivityCtx, ActivityInfo, Attempt, Grip};

use crate::activity::retry::pause_after;
use crate::inner::Inner;
use crate::run::cached_run::{About, Arrival, Body, Live};
use crate::run::open_operations::Open;
use crate::timer::wheel::{AlarmNo, Due};
use crate::turn::validate::fitting;

/// Pauses longer than this become timers of the run, unless the command says otherwise.
const RETRY_HERE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Locals {
    /// None between two attempts.
    running: HashMap<(RunNo, Seq), (u32, Option<Grip>)>,
    /// The timeouts of what runs: a play from the beginning counts its attempts from 1 again, and must not meet old ones.
    alarms: HashMap<(RunNo, Seq), Vec<AlarmNo>>,
}

impl Locals {
    pub(crate) fn take_run(&mut self, run: RunNo) -> Vec<Grip> {
        self.alarms.retain(|(of, _), _| *of != run);
        self.running.extract_if(|(of, _), _| *of == run).filter_map(|(_, (_, grip))| grip).collect()
    }

    pub(crate) fn take_grips(&mut self) -> Vec<Grip> {
        self.running.drain().filter_map(|(_, (_, grip))| grip).collect()
    }

    /// Takes what runs for a queue.
    pub(crate) fn take_queue(&mut self, queue: &Name) -> Vec<Grip> {
        let of_queue = |grip: &Option<Grip>| grip.as_ref().is_some_and(|grip| grip.ctx().info().queue == *queue);
        self.running.extract_if(|_, (_, grip)| of_queue(grip)).filter_map(|(_, (_, grip))| grip).collect()
    }

    /// All that runs.
    pub(crate) fn grips(&self) -> impl Iterator<Item = Grip> {
        self.running.values().filter_map(|(_, grip)| grip.clone())
    }

    /// Whether anything runs now.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.values().any(|(_, grip)| grip.is_some())
    }

    /// Whether an attempt for this run is under way.
    pub(crate) fn is_at_work(&self, run: RunNo) -> bool {
        let is_tried = |grip: &Option<Grip>| grip.as_ref().is_some_and(|grip| !grip.is_given_up());
        self.running.iter().any(|((of, _), (_, grip))| *of == run && is_tried(grip))
    }

    /// This attempt is over.
    fn end(&mut self, run: RunNo, seq: Seq, attempt: u32) {
        if self.is_current(run, seq, attempt) {
            self.running.remove(&(run, seq));
        }
    }

    /// Whether this very attempt is the one that runs.
    fn is_current(&self, run: RunNo, seq: Seq, attempt: u32) -> bool {
        self.running.get(&(run, seq)).is_some_and(|(current, _)| *current == attempt)
    }
}

/// What both kinds of local work have.
struct Work {
    seq: Seq,
    attempt: u32,
    name: Name,
    id: Name,
    retry: Option<Retry>,
    timeouts: Timeouts,
    /// When the first attempt was scheduled.
    scheduled: Timestamp,
    is_closure: bool,
    retry_here: Duration,
}

impl Work {
    fn activity(command: &ScheduleLocalActivity, scheduled: Timestamp, attempt: u32) -> Self {
        Self {
            seq: command.seq,
            attempt,
            name: command.activity.clone(),
            id: command.id.to_string().into(),
            retry: command.retry.clone(),
            timeouts: command.timeouts.clone(),
            scheduled: command.first_scheduled.unwrap_or(scheduled),
            is_closure: false,
            retry_here: command.local_retry_threshold.unwrap_or(RETRY_HERE),
        }
    }

    fn closure(command: &ScheduleRun, scheduled: Timestamp, attempt: u32) -> Self {
        Self {
            seq: command.seq,
            attempt,
            name: command.name.clone(),
            id: command.id.to_string().into(),
            retry: command.retry.clone(),
            timeouts: command.timeouts.clone(),
            scheduled,
            is_closure: true,
            retry_here: Duration::MAX,
        }
    }

    /// Whether this attempt was the last.
    fn is_spent(&self) -> bool {
        self.retry.as_ref().is_none_or(|retry| retry.attempts > 0 && self.attempt >= retry.attempts)
    }

    fn resolution(&self, outcome: Outcome) -> Resolution {
        if self.is_closure { Resolution::Run(outcome) } else { Resolution::Activity(outcome) }
    }

    fn failed(&self, failure: Failure, retry: RetryState) -> Resolution {
        let about = ActivityFailed { activity: self.name.clone(), id: self.id.clone(), retry };
        let message = format!("{} {} failed", if self.is_closure { "run" } else { "local activity" }, self.name);
        let failure = Failure::new(FailureKind::Activity(Box::new(about)), message).caused_by(failure);
        self.resolution(Outcome::Failed(Box::new(failure)))
    }
}

impl Inner {
    /// Starts all local work of a run that was loaded, except what ended while it was not in memory, and asks activities
    /// to stop that were asked before.
    pub(crate) fn resume(self: &Arc<Self>, live: &Live, body: &mut Body) {
        self.start_locals(live, body);
        let is_activity = |seq: &&Seq| matches!(body.book.open.get(seq), Some(Open::Activity { .. }));
        for seq in body.book.wakeful.iter().filter(is_activity) {
            self.cancel_task(live.no, *seq, true);
        }
    }

    /// Starts all local work of a run that is open, does not run, and has not ended: its result may be in the inbox.
    pub(crate) fn start_locals(self: &Arc<Self>, live: &Live, body: &mut Body) {
        if self.is_draining() {
            return;
        }
        let open: Vec<Seq> = body
            .book
            .open
            .iter()
            .filter(|(_, open)| matches!(open, Open::Local { .. } | Open::Run { .. }))
            .map(|(seq, _)| *seq)
            .collect();
        let run = live.no;
        for seq in open {
            // In this order: work that ends is told first, and then no longer runs.
            let runs = self.locals().running.contains_key(&(run, seq));
            if !runs && !live.lock().has_local(seq) {
                let first = match body.book.open.get(&seq) {
                    Some(Open::Local { command, .. }) => command.attempt.max(1),
                    _ => 1,
                };
                self.start_local(run, body, seq, first);
            }
        }
    }

    /// Tries local work again.
    pub(crate) fn redo(self: &Arc<Self>, live: &Live, body: &mut Body, redo: Vec<(Seq, u32)>) {
        if self.is_draining() {
            return;
        }
        for (seq, attempt) in redo {
            self.start_local(live.no, body, seq, attempt);
        }
    }

    fn start_local(self: &Arc<Self>, run: RunNo, body: &mut Body, seq: Seq, attempt: u32) {
        let about = body.about.clone();
        let now = self.host.now();
        let (work, input) = match body.book.open.get(&seq) {
            Some(Open::Local { command, scheduled }) => {
                (Work::activity(command, *scheduled, attempt), Some(command.input.clone()))
            }
            Some(Open::Run { command, scheduled }) => (Work::closure(command, *scheduled, attempt), None),
            _ => return,
        };
        let ctx = ActivityCtx::new(info(&about, &work, now), Arc::new(|_| {}));
        let this = Arc::downgrade(self);
        let work = Arc::new(work);
        let (for_done, about_done, seen) = (work.clone(), about, ctx.clone());
        let done = move |result: Result<Payload, Failure>| {
            let Some(this) = this.upgrade() else { return };
            let result = if seen.is_left_to_others(&result) { Err(not_outside()) } else { result };
            this.local_done(run, &about_done, &for_done, result);
        };
        let attempt = match input {
            Some(input) => match self.options.registry.find_activity(&work.name) {
                Some(activity) => Attempt::new(activity, ctx, input, done),
                None => {
                    let failure = Failure::application(format!(
                        "no activity {:?} is registered here: serve it beside the workflow that calls it",
                        work.name
                    ));
                    return self.local_done(run, &body.about, &work, Err(failure.typed("NotRegistered")));
                }
            },
            None => match body.run.take_body(seq) {
                // Called within the attempt: it is user code, and may panic.
                Some(closure) => Attempt::of_future(ctx, Box::pin(async move { closure().await }), done),
                None => return,
            },
        };
        let attempt = attempt.counted_by(self.worker(&body.about.queue).meters());
        let grip = attempt.grip();
        self.note_running(Doing::Run(run), &grip);
        self.locals().running.insert((run, seq), (work.attempt, Some(grip)));
        self.watch_local(run, &work, now);
        self.host.attempt(attempt);
    }

    fn watch_local(&self, run: RunNo, work: &Work, now: Timestamp) {
        let (seq, attempt) = (work.seq, work.attempt);
        let limits = [
            (work.timeouts.start_to_close.map(|timeout| now.after(timeout)), TimeoutKind::StartToClose),
            (
                work.timeouts.schedule_to_close.map(|timeout| work.scheduled.after(timeout)),
                TimeoutKind::ScheduleToClose,
            ),
        ];
        let due = |kind| Due::LocalTimeout { run, seq, attempt, kind };
        let alarms = limits.into_iter().filter_map(|(at, kind)| Some(self.own_timer(at?, due(kind)))).collect();
        let before = self.locals().alarms.insert((run, seq), alarms);
        self.cancel_alarms(&before.unwrap_or_default());
    }

    /// Local work has taken too long.
    pub(crate) fn local_timed_out(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32, kind: TimeoutKind) {
        let mut locals = self.locals();
        if !locals.is_current(run, seq, attempt) {
            return;
        }
        let grip = locals.running.get_mut(&(run, seq)).and_then(|(_, grip)| grip.take());
        drop(locals);
        if let Some(grip) = grip {
            let failure = Failure::new(FailureKind::Timeout(kind), format!("it took too long ({kind:?})"));
            grip.finish(Err(failure));
            self.give_up(&grip, "it took too long");
        }
    }

    fn local_done(self: &Arc<Self>, run: RunNo, about: &About, work: &Work, result: Result<Payload, Failure>) {
        let alarms = self.locals().alarms.remove(&(run, work.seq));
        self.cancel_alarms(&alarms.unwrap_or_default());
        if result.is_err() && self.is_stopping(&about.queue) {
            // It stopped because the worker does: the next process tries it again, as if this attempt had not been.
            self.locals().end(run, work.seq, work.attempt);
            return self.drained();
        }
        let resolution = match fitting(result, self.options.payload_limit) {
            Ok(result) => work.resolution(Outcome::Completed(result)),
            Err(failure) => {
                let now = self.host.now();
                let over = work.timeouts.schedule_to_close.map(|timeout| work.scheduled.after(timeout));
                let pause = work.retry.as_ref().and_then(|retry| pause_after(retry, work.attempt, &failure));
                match pause.filter(|pause| over.is_none_or(|over| now.after(*pause) < over)) {
                    Some(pause) if pause <= work.retry_here => {
                        tracing::debug!(workflow_id = %about.workflow_id, name = %work.name, attempt = work.attempt, %failure, "local work failed and is tried again");
                        return self.try_local_again(run, work, now.after(pause));
                    }
                    Some(pause) => {
                        Resolution::Backoff { attempt: work.attempt + 1, pause, first_scheduled: Some(work.scheduled) }
                    }
                    None => {
                        let why = match failure.kind {
                            FailureKind::Timeout(_) => RetryState::Timeout,
                            FailureKind::Cancelled => RetryState::CancelRequested,
                            _ if work.is_spent() => RetryState::MaximumAttemptsReached,
                            _ => RetryState::NonRetryableFailure,
                        };
                        work.failed(failure, why)
                    }
                }
            }
        };
        // Told first, then forgotten: what is found neither running nor in the inbox is started again.
        self.deliver(run, Arrival::Local { seq: work.seq, resolution });
        self.locals().end(run, work.seq, work.attempt);
        self.drained();
    }

    fn try_local_again(self: &Arc<Self>, run: RunNo, work: &Work, at: Timestamp) {
        let attempt = work.attempt + 1;
        self.locals().running.insert((run, work.seq), (attempt, None));
        self.own_timer(at, Due::Local { run, seq: work.seq, attempt });
        self.local_ended(run);
        self.drained();
    }

    /// The pause before another attempt is over.
    pub(crate) fn local_due(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32) {
        if self.locals().is_current(run, seq, attempt) {
            self.with_live(run, |state| state.redo.push((seq, attempt)));
        }
    }

    /// Nobody wants what a run's local work comes to.
    pub(crate) fn give_up_locals(self: &Arc<Self>, run: RunNo, reason: &str) {
        let grips = self.locals().take_run(run);
        for grip in grips {
            self.give_up(&grip, reason);
        }
    }

    /// Local work is no longer wanted.
    pub(crate) fn cancel_locals(self: &Arc<Self>, run: RunNo, cancelled: Vec<(Seq, bool)>) {
        for (seq, waits) in cancelled {
            let mut locals = self.locals();
            match waits {
                true => {
                    let grip = locals.running.get(&(run, seq)).and_then(|(_, grip)| grip.clone());
                    drop(locals);
                    if let Some(grip) = grip {
                        grip.cancel("the workflow no longer wants it");
                    }
                }
                false => {
                    let work = locals.running.remove(&(run, seq));
                    drop(locals);
                    if let Some((_, Some(grip))) = work {
                        self.give_up(&grip, "the workflow no longer wants it");
                    }
                }
            }
        }
    }
}

/// Local work is in no row of its own that somebody could complete.
fn not_outside() -> Failure {
    let words = "a local activity cannot be completed by somebody outside: call it with `ctx.call`";
    Failure::application(words).typed("NotOutside").not_retryable()
}

fn info(about: &About, work: &Work, now: Timestamp) -> ActivityInfo {
    ActivityInfo {
        activity: work.name.clone(),
        activity_id: work.id.clone(),
        workflow: about.workflow.clone(),
        workflow_id: about.workflow_id.clone(),
        run_id: about.run_id.clone(),
        queue: about.queue.clone(),
        attempt: work.attempt,
        scheduled: work.scheduled,
        started: now,
        deadline: work.timeouts.start_to_close.map(|timeout| now.after(timeout)),
        details: None,
    }
}
