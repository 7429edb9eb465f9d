//! Local work: local activities and side effects. It runs between turns, in the process that plays the run, and is in no
//! row of the store: the turn that records its result is the first trace of it.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{
    ActivityFailed, Failure, FailureKind, Headers, Name, Outcome, Payload, Resolution, Retried, Retry, RetryState,
    ScheduleLocalActivity, ScheduleSideEffect, Seq, TimeoutKind, Timeouts, Timestamp,
};
use dacapo_store::{Doing, RunNo};
use dacapo_worker::{ActivityCtx, ActivityInfo, Attempt, pause_after};

use crate::activity::cancel::cancel_task;
use crate::activity::local_work::CancelledLocal;
use crate::activity::task::UNWANTED;
use crate::crash_guard::hooks::{Ended, ended, note_attempt};
use crate::host::Steady;
use crate::lifecycle::shutdown;
use crate::lifecycle::zombies::give_up;
use crate::run::cached_run::{CachedRun, Playable};
use crate::run::deliver::{deliver, with_run};
use crate::run::info::RunInfo;
use crate::run::message::Message;
use crate::run::open_operations::Open;
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::turn::validate::within_limit;

/// Pauses longer than this become timers of the run, unless the command says otherwise.
const RETRY_HERE: Duration = Duration::from_secs(60);

/// One attempt of local work: of a local activity or of a side effect.
struct Work {
    seq: Seq,
    attempt: u32,
    name: Name,
    id: Name,
    retry: Option<Retry>,
    timeouts: Timeouts,
    /// When the first attempt was scheduled.
    scheduled: Timestamp,
    /// When this attempt must have ended, and (`over`) when all attempts together must have ended; both in steady time.
    deadline: Option<Steady>,
    over: Option<Steady>,
    is_closure: bool,
    headers: Headers,
    retry_here: Duration,
}

impl Work {
    /// Sets the deadlines, counted from now. `over` is when all attempts must have ended, if earlier ones were made here.
    fn timed(self, (now, steady): (Timestamp, Steady), over: Option<Steady>) -> Self {
        let rest = self.timeouts.schedule_to_close.map(|timeout| self.scheduled.after(timeout).since(now));
        Self {
            deadline: self.timeouts.start_to_close.map(|timeout| steady.after(timeout)),
            over: over.or(rest.map(|rest| steady.after(rest))),
            ..self
        }
    }

    /// The timeout that is due by now, if one is: the attempt's result is too late.
    fn overdue(&self, steady: Steady) -> Option<TimeoutKind> {
        let is_due = |at: Option<Steady>| at.is_some_and(|at| at <= steady);
        match () {
            () if is_due(self.over) => Some(TimeoutKind::ScheduleToClose),
            () if is_due(self.deadline) => Some(TimeoutKind::StartToClose),
            () => None,
        }
    }

    fn activity(command: &ScheduleLocalActivity, scheduled: Timestamp, attempt: u32) -> Self {
        Self {
            seq: command.seq,
            attempt,
            name: command.activity.clone(),
            id: command.id.to_string().into(),
            retry: command.retry.clone(),
            timeouts: command.timeouts.clone(),
            scheduled: command.first_scheduled.unwrap_or(scheduled),
            deadline: None,
            over: None,
            is_closure: false,
            headers: command.headers.clone(),
            retry_here: command.local_retry_threshold.unwrap_or(RETRY_HERE),
        }
    }

    fn closure(command: &ScheduleSideEffect, scheduled: Timestamp, attempt: u32) -> Self {
        Self {
            seq: command.seq,
            attempt,
            name: command.name.clone(),
            id: command.id.to_string().into(),
            retry: command.retry.clone(),
            timeouts: command.timeouts.clone(),
            scheduled,
            deadline: None,
            over: None,
            is_closure: true,
            headers: Headers::new(),
            retry_here: Duration::MAX,
        }
    }

    /// Whether this attempt was the last.
    fn is_spent(&self) -> bool {
        self.retry.as_ref().is_none_or(|retry| retry.attempts > 0 && self.attempt >= retry.attempts)
    }

    /// Decides what follows a failed attempt.
    fn after(&self, failure: &Failure, steady: Steady) -> After {
        let pause = self.retry.as_ref().and_then(|retry| pause_after(retry, self.attempt, failure));
        match pause.filter(|pause| self.over.is_none_or(|over| steady.after(*pause) < over)) {
            Some(pause) if pause <= self.retry_here => After::RetryHere(pause),
            Some(pause) => After::RetryByTimer(pause),
            None => After::End(match failure.kind {
                FailureKind::Timeout(_) => RetryState::Timeout,
                FailureKind::Cancelled => RetryState::CancelRequested,
                _ if self.is_spent() => RetryState::MaximumAttemptsReached,
                _ => RetryState::NonRetryableFailure,
            }),
        }
    }

    /// The attempts so far, if this is not the first. Failures of local work are kept nowhere.
    fn retried(&self) -> Option<Box<Retried>> {
        (self.attempt > 1).then(|| Box::new(Retried { attempts: self.attempt, last_failure: None }))
    }

    fn resolution(&self, outcome: Outcome) -> Resolution {
        if self.is_closure { Resolution::SideEffect(outcome) } else { Resolution::Activity(outcome) }
    }

    fn failed(&self, failure: Failure, retry: RetryState) -> Resolution {
        let about = ActivityFailed { activity: self.name.clone(), id: self.id.clone(), retry };
        let message =
            format!("{} {} failed", if self.is_closure { "side effect" } else { "local activity" }, self.name);
        let failure = Failure::new(FailureKind::Activity(Box::new(about)), message).caused_by(failure);
        self.resolution(Outcome::Failed(Box::new(failure)))
    }
}

/// The step after a failed attempt of local work.
enum After {
    /// Another attempt, after this pause, in this process.
    RetryHere(Duration),
    /// Another attempt, after a pause so long that a timer of the run stands for it.
    RetryByTimer(Duration),
    End(RetryState),
}

/// Starts the local work of a loaded run, except work that ended while the run was not in memory, and asks those activities
/// to stop that were asked before.
pub(crate) fn resume(shared: &Arc<Shared>, cached: &CachedRun, playable: &mut Playable) {
    start_all(shared, cached, playable);
    let is_activity = |seq: &&Seq| matches!(playable.open.operations.get(seq), Some(Open::Activity { .. }));
    for seq in playable.open.without_row.iter().filter(is_activity) {
        cancel_task(shared, cached.no, *seq, true);
    }
}

/// Starts each open local operation of a run that does not run and has no result in the inbox. Gives the work up again if
/// another thread has closed the run.
pub(crate) fn start_all(shared: &Arc<Shared>, cached: &CachedRun, playable: &mut Playable) {
    if shared.shutdown.has_begun() {
        return;
    }
    let is_local =
        |seq: &&Seq| matches!(playable.open.operations.get(seq), Some(Open::Local { .. } | Open::SideEffect { .. }));
    let open: Vec<Seq> = playable.open.without_row.iter().filter(is_local).copied().collect();
    for seq in open {
        // Look in this order: when work ends, its result is delivered first, and only then is the work no longer known.
        let is_known = shared.local.is_known(cached.no, seq);
        if !is_known && !cached.lock().has_local(seq) {
            let first = match playable.open.operations.get(&seq) {
                Some(Open::Local { command, .. }) => command.attempt.max(1),
                _ => 1,
            };
            start(shared, cached.no, playable, seq, first);
        }
    }
    give_up_if_gone(shared, cached);
}

/// Starts these attempts of local work, each of which follows a failed one.
pub(crate) fn retry(shared: &Arc<Shared>, cached: &CachedRun, playable: &mut Playable, retries: Vec<(Seq, u32)>) {
    if shared.shutdown.has_begun() {
        return;
    }
    for (seq, attempt) in retries {
        start(shared, cached.no, playable, seq, attempt);
    }
    give_up_if_gone(shared, cached);
}

/// Gives up the local work of a run that is gone. Called after work was started: a thread that closes the run first marks
/// it as gone, and then gives up its local work.
fn give_up_if_gone(shared: &Arc<Shared>, cached: &CachedRun) {
    if cached.lock().is_gone {
        give_up_all(shared, cached.no, "the run is closed");
    }
}

fn start(shared: &Arc<Shared>, run: RunNo, playable: &mut Playable, seq: Seq, attempt: u32) {
    let info = playable.info.clone();
    let (now, steady) = shared.clock();
    let (work, input) = match playable.open.operations.get(&seq) {
        Some(Open::Local { command, scheduled }) => {
            (Work::activity(command, *scheduled, attempt), Some(command.input.clone()))
        }
        Some(Open::SideEffect { command, scheduled }) => (Work::closure(command, *scheduled, attempt), None),
        _ => return,
    };
    let ctx = ActivityCtx::new(attempt_info(&info, &work, now), Arc::new(|_| {}), usize::MAX);
    let this = Arc::downgrade(shared);
    let work = Arc::new(work.timed((now, steady), shared.local.over(run, seq)));
    let (ended, ended_info, seen) = (work.clone(), info, ctx.clone());
    let done = move |result: Result<Payload, Failure>| {
        let Some(shared) = this.upgrade() else { return };
        let result = if seen.is_left_to_others(&result) { Err(not_external()) } else { result };
        end(&shared, run, &ended_info, &ended, result);
    };
    let attempt = match input {
        Some(input) => match shared.options.registry.find_activity(&work.name) {
            Some(activity) => Attempt::new(activity, ctx, input, done),
            None => {
                let failure = Failure::application(format!(
                    "no activity {:?} is registered here: serve it beside the workflow that calls it",
                    work.name
                ));
                shared.local.expect((run, seq, work.attempt), work.over);
                return end(shared, run, &playable.info, &work, Err(failure.typed("NotRegistered")));
            }
        },
        None => match playable.run.take_closure(seq) {
            // Called within the attempt: it is user code, and may panic.
            Some(closure) => Attempt::of_future(ctx, Box::pin(async move { closure().await }), done),
            None => return,
        },
    };
    // The names of side effects are free: they are counted together.
    let metered = if work.is_closure { "" } else { &*work.name };
    let attempt = attempt.counted_by(shared.workers.of(&playable.info.name.queue).meters().of_activity(metered));
    let handle = attempt.handle();
    note_attempt(shared, Doing::Run(run), &handle);
    let before = shared.local.begin((run, seq, work.attempt), handle, work.over);
    shared.timers.disarm(&before);
    arm(shared, run, &work, steady);
    shared.host.attempt(attempt);
}

fn arm(shared: &Shared, run: RunNo, work: &Work, steady: Steady) {
    let (seq, attempt) = (work.seq, work.attempt);
    let limits = [(work.deadline, TimeoutKind::StartToClose), (work.over, TimeoutKind::ScheduleToClose)];
    let due = |kind| Due::LocalTimeout { run, seq, attempt, kind };
    let alarm = |(at, kind): (Option<Steady>, _)| Some(shared.arm_in(at?.since(steady), due(kind)));
    let alarms = limits.into_iter().filter_map(alarm).collect();
    shared.timers.disarm(&shared.local.set_alarms(run, seq, attempt, alarms));
}

/// Ends an attempt of local work that has taken too long.
pub(crate) fn timed_out(shared: &Arc<Shared>, (run, seq, attempt): (RunNo, Seq, u32), kind: TimeoutKind) {
    if let Some(handle) = shared.local.take_timed_out(run, seq, attempt) {
        handle.finish(Err(took_too_long(kind)));
        give_up(shared, &handle, "it took too long");
    }
}

fn end(shared: &Arc<Shared>, run: RunNo, info: &RunInfo, work: &Work, result: Result<Payload, Failure>) {
    shared.timers.disarm(&shared.local.take_alarms(run, work.seq));
    if result.is_err() && shared.shutdown.is_stopping(&info.name.queue) {
        // The attempt stopped because the worker shuts down: the next process makes it again, as if this one had not been.
        shared.local.end(run, work.seq, work.attempt);
        return shutdown::check(shared);
    }
    let steady = shared.host.steady_now();
    let result = work.overdue(steady).map_or(result, |kind| Err(took_too_long(kind)));
    let resolution = match within_limit(result, shared.options.payload_limit) {
        Ok(result) => work.resolution(Outcome::Completed(result)),
        Err(failure) => match work.after(&failure, steady) {
            After::RetryHere(pause) => {
                let (workflow_id, name, attempt) = (&info.name.workflow_id, &work.name, work.attempt);
                tracing::debug!(%workflow_id, %name, attempt, %failure, "local work failed and is tried again");
                return retry_in(shared, run, work, pause);
            }
            After::RetryByTimer(pause) => {
                Resolution::Backoff { attempt: work.attempt + 1, pause, first_scheduled: Some(work.scheduled) }
            }
            After::End(why) => work.failed(failure, why),
        },
    };
    // Deliver first, then forget: work that is neither known nor has a result in the inbox is started again.
    // Work that was given up meanwhile has no result any more.
    if shared.local.is_current(run, work.seq, work.attempt) {
        deliver(shared, run, Message::Local { seq: work.seq, resolution, retried: work.retried() });
    }
    shared.local.end(run, work.seq, work.attempt);
    shutdown::check(shared);
}

fn retry_in(shared: &Arc<Shared>, run: RunNo, work: &Work, pause: Duration) {
    // None: the work was given up meanwhile.
    if let Some(attempt) = shared.local.wait_for_next(run, work.seq, work.attempt) {
        shared.arm_in(pause, Due::Local { run, seq: work.seq, attempt });
    }
    ended(shared, Ended::LocalAttempt(run));
    shutdown::check(shared);
}

/// Asks the run to start the next attempt of local work, after the pause before it.
pub(crate) fn retry_due(shared: &Arc<Shared>, (run, seq, attempt): (RunNo, Seq, u32)) {
    if shared.local.is_current(run, seq, attempt) {
        with_run(shared, run, |state| state.retries.push((seq, attempt)));
    }
}

/// Gives up all local work of a run: its outcome is void.
pub(crate) fn give_up_all(shared: &Arc<Shared>, run: RunNo, reason: &str) {
    for handle in shared.local.take_run(run) {
        give_up(shared, &handle, reason);
    }
}

/// Cancels local work that the workflow no longer wants. `waits` says whether the workflow waits for its outcome.
pub(crate) fn cancel(shared: &Arc<Shared>, run: RunNo, seq: Seq, waits: bool) {
    match shared.local.cancel(run, seq, waits) {
        CancelledLocal::Ask(handle) => handle.cancel(UNWANTED),
        CancelledLocal::GiveUp(handle) => give_up(shared, &handle, UNWANTED),
        CancelledLocal::Nothing => {}
    }
}

fn took_too_long(kind: TimeoutKind) -> Failure {
    Failure::new(FailureKind::Timeout(kind), format!("it took too long ({kind:?})"))
}

/// The failure of local work that leaves itself to the holder of a token: there is no row that the holder could complete.
fn not_external() -> Failure {
    let words = "a local activity cannot be completed by its token: call it with `ctx.call`";
    Failure::application(words).typed("NotOutside").non_retryable()
}

fn attempt_info(run: &RunInfo, work: &Work, now: Timestamp) -> ActivityInfo {
    ActivityInfo {
        activity: work.name.clone(),
        activity_id: work.id.clone(),
        workflow: run.name.workflow.clone(),
        workflow_id: run.name.workflow_id.clone(),
        run_id: run.name.run_id.clone(),
        queue: run.name.queue.clone(),
        attempt: work.attempt,
        scheduled: work.scheduled,
        started: now,
        deadline: work.timeouts.start_to_close.map(|timeout| now.after(timeout)),
        details: None,
        headers: work.headers.clone(),
    }
}
