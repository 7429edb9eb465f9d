//! Attempts of activities: tasks that the server or its core hands out, run by the worker's code for attempts.

mod side_effect;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_client::PendingActivity;
use dacapo_core::{Failure, FailureKind, Name, Payload, Seq};
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{ActivityCtx, ActivityInfo, Attempt, AttemptHandle, Attempts, Entity, Registry, Worker};
use temporalio_common::protos::coresdk::{ActivityHeartbeat, ActivityTaskCompletion};

use crate::convert::{
    duration_from_proto, failure_to_proto, headers_from_proto, payload_from_proto, payload_to_proto, time_from_proto,
};
use crate::core_worker::CoreWorker;
use crate::host::ClusterHost;
use crate::player::QueuePlayer;
use crate::proto::activity::ActivityExecutionResult;
use crate::proto::task::{ActivityCancelReason, ActivityTask, Cancel, Start, activity_task::Variant};
use crate::reserved::SIDE_EFFECT;
use crate::token::token_to_text;

/// The attempts of one queue.
pub(crate) struct Activities {
    pub(crate) registry: Registry,
    pub(crate) worker: Arc<Worker>,
    pub(crate) host: Arc<ClusterHost>,
    pub(crate) core: Arc<CoreWorker>,
    pub(crate) player: Arc<QueuePlayer>,
    pub(crate) attempts: Attempts,
    pub(crate) payload_limit: usize,
    pub(crate) running: Mutex<BTreeMap<Vec<u8>, Running>>,
    /// Whether a shutdown has asked the attempts to stop. Local ones are left to the next worker from then on.
    pub(crate) stops: AtomicBool,
}

/// An attempt that runs.
pub(crate) struct Running {
    handle: AttemptHandle,
    /// Whether it is one of a local activity or a side effect: the server knows nothing of it.
    is_local: bool,
    /// Whether the server asked for its cancellation: it takes no other.
    is_cancelled: bool,
}

impl Running {
    fn is_local_of(&self, run_id: &str) -> bool {
        self.is_local && self.handle.ctx().info().run_id == run_id
    }
}

impl Activities {
    pub(crate) fn running() -> Mutex<BTreeMap<Vec<u8>, Running>> {
        Mutex::new(ranks::TEMPORAL_ATTEMPTS, BTreeMap::new())
    }

    /// Begins or cancels an attempt.
    pub(crate) fn take(self: &Arc<Self>, task: ActivityTask) {
        match task.variant {
            Some(Variant::Start(start)) => self.begin(task.task_token, start),
            Some(Variant::Cancel(cancel)) => self.cancel(&task.task_token, &cancel),
            None => {}
        }
    }

    fn begin(self: &Arc<Self>, token: Vec<u8>, mut start: Start) {
        if start.is_local && self.stops.load(Ordering::SeqCst) {
            return self.leave_run(&start.workflow_execution.unwrap_or_default().run_id);
        }
        let input = std::mem::take(&mut start.input).into_iter().map(payload_from_proto).collect();
        if let Some(name) = start.activity_type.strip_prefix(SIDE_EFFECT).map(str::to_owned) {
            return self.begin_side_effect(token, start, &name);
        }
        let Some(activity) = self.registry.find_activity(&start.activity_type) else {
            let known: Vec<&str> = self.registry.activities().map(Name::as_str).collect();
            let failure = Failure::application(format!(
                "no activity {:?} is registered here; registered are: {}. Serve it in this program, or call it on the queue of a \
                 worker that has it",
                start.activity_type,
                known.join(", ")
            ));
            return self
                .complete(token, ActivityExecutionResult::fail(failure_to_proto(&failure.typed("NotRegistered"))));
        };
        let is_local = start.is_local;
        let ctx = self.ctx(&token, info(start, self.worker.queue()), is_local);
        let (this, ended, of_token) = (self.clone(), ctx.clone(), token.clone());
        let done = move |result| this.ended(of_token, &ended, is_local, result);
        let name = ctx.info().activity.clone();
        self.run(token, &name, is_local, Attempt::new(activity, ctx, input, done));
    }

    fn ctx(&self, token: &[u8], info: ActivityInfo, is_local: bool) -> ActivityCtx {
        if is_local {
            return ActivityCtx::with_token(info, Arc::new(|_| {}), self.payload_limit, None);
        }
        let (core, of_token) = (self.core.clone(), token.to_vec());
        let report = move |details: Payload| {
            core.record_heartbeat(ActivityHeartbeat {
                task_token: of_token.clone(),
                details: vec![payload_to_proto(&details)],
            });
        };
        ActivityCtx::with_token(info, Arc::new(report), self.payload_limit, Some(token_to_text(token)))
    }

    /// Runs an attempt of what meters know by this name. It is in the list of running ones before it can end.
    fn run(&self, token: Vec<u8>, name: &str, is_local: bool, attempt: Attempt) {
        let attempt = attempt.counted_by(self.worker.meters().of_activity(name));
        let running = Running { handle: attempt.handle(), is_local, is_cancelled: false };
        self.running.lock().insert(token, running);
        self.attempts.start(attempt);
    }

    fn ended(&self, token: Vec<u8>, ctx: &ActivityCtx, is_local: bool, result: Result<Payload, Failure>) {
        if is_local && self.is_left_to_the_next_worker(&token, ctx, &result) {
            drop(self.running.lock().remove(&token));
            return self.leave_run(&ctx.info().run_id);
        }
        let is_stopped = was_stopped(ctx, &result);
        let result = match result {
            result if ctx.is_left_to_others(&result) && !is_local => ActivityExecutionResult::will_complete_async(),
            result if ctx.is_left_to_others(&result) => {
                let words = "a local activity cannot be completed by its token: call it with `ctx.call`";
                let failure = Failure::application(words).typed("NotOutside").non_retryable();
                ActivityExecutionResult::fail(failure_to_proto(&failure))
            }
            Ok(value) => ActivityExecutionResult::ok(payload_to_proto(&value)),
            Err(failure) if is_stopped => self.cancelled(&token, &failure),
            Err(failure) => ActivityExecutionResult::fail(failure_to_proto(&failure)),
        };
        self.complete(token, result);
    }

    /// Whether a shutdown has stopped an attempt of local work, and not the workflow.
    fn is_left_to_the_next_worker(&self, token: &[u8], ctx: &ActivityCtx, result: &Result<Payload, Failure>) -> bool {
        was_stopped(ctx, result) && self.stops.load(Ordering::SeqCst) && !self.is_cancelled(token)
    }

    /// The result of an attempt that has ended as cancelled. One that was not cancelled by the server has failed, and is tried again.
    fn cancelled(&self, token: &[u8], failure: &Failure) -> ActivityExecutionResult {
        if self.is_cancelled(token) {
            let cancelled = failure.chain().find(|link| link.kind == FailureKind::Cancelled);
            return ActivityExecutionResult::cancel(failure_to_proto(cancelled.unwrap_or(failure)));
        }
        let stopped = Failure::application(format!("the attempt was stopped: {failure}")).typed("AttemptStopped");
        ActivityExecutionResult::fail(failure_to_proto(&stopped))
    }

    /// Whether the server asked for the cancellation of an attempt.
    fn is_cancelled(&self, token: &[u8]) -> bool {
        self.running.lock().get(token).is_some_and(|running| running.is_cancelled)
    }

    fn complete(&self, token: Vec<u8>, result: ActivityExecutionResult) {
        let ended = self.running.lock().remove(&token);
        drop(ended);
        self.core.complete_activity(ActivityTaskCompletion { task_token: token, result: Some(result) });
    }

    fn cancel(&self, token: &[u8], cancel: &Cancel) {
        let handle = match self.running.lock().get_mut(token) {
            Some(running) => {
                running.is_cancelled |= cancel.reason() == ActivityCancelReason::Cancelled;
                running.handle.clone()
            }
            None => return,
        };
        match cancel.reason() {
            ActivityCancelReason::Cancelled => handle.cancel("the workflow no longer wants it"),
            ActivityCancelReason::WorkerShutdown => handle.cancel("the worker shuts down"),
            ActivityCancelReason::Paused => handle.cancel("it was paused"),
            ActivityCancelReason::Reset => handle.cancel("it was reset"),
            ActivityCancelReason::TimedOut => self.give_up(token.to_vec(), &handle, "it took too long"),
            ActivityCancelReason::NotFound => {
                self.give_up(token.to_vec(), &handle, "its result is not wanted any more")
            }
        }
    }

    /// Gives up on an attempt: its result is void, it is asked to stop until it does, and its place is free.
    fn give_up(&self, token: Vec<u8>, handle: &AttemptHandle, reason: &str) {
        if !handle.let_go() {
            return;
        }
        self.host.terminate(&self.worker, Entity::activity(handle.ctx().info()), handle, reason);
        let failure = Failure::new(FailureKind::Cancelled, reason.to_owned());
        self.complete(token, ActivityExecutionResult::cancel(failure_to_proto(&failure)));
    }

    /// Stops the local attempts of a run that leaves memory. Core has forgotten them, so they are not completed.
    pub(crate) fn run_left(&self, run_id: &str) {
        let mut running = self.running.lock();
        let of_run: Vec<Vec<u8>> =
            running.iter().filter(|(_, running)| running.is_local_of(run_id)).map(|(token, _)| token.clone()).collect();
        let gone: Vec<Running> = of_run.iter().filter_map(|token| running.remove(token)).collect();
        drop(running);
        for Running { handle, .. } in gone {
            if handle.let_go() {
                let entity = Entity::activity(handle.ctx().info());
                self.host.terminate(&self.worker, entity, &handle, "its run has left memory");
            }
        }
    }

    /// Leaves the local work of a run to the next worker, unless an attempt of it runs on: its workflow task is not completed, and none
    /// of its attempts counts as failed.
    fn leave_run(&self, run_id: &str) {
        if !self.running.lock().values().any(|running| running.is_local_of(run_id)) {
            self.core.evict(run_id);
        }
    }

    /// Leaves behind all attempts that still run. The server tries them again.
    pub(crate) fn cut_off(&self) -> Vec<PendingActivity> {
        self.stops.store(true, Ordering::SeqCst);
        let all = std::mem::take(&mut *self.running.lock());
        self.player.runs_with_local_work().iter().for_each(|run_id| self.leave_run(run_id));
        let mut left = Vec::new();
        for (token, Running { handle, is_local, .. }) in all {
            let info = handle.ctx().info();
            let mut activity = PendingActivity::new(Seq::default(), info.activity_id.clone(), info.activity.clone());
            (activity.attempt, activity.scheduled, activity.queue) = (info.attempt, info.scheduled, info.queue.clone());
            left.push(activity);
            handle.give_up("the worker has shut down");
            if is_local {
                continue;
            }
            let failure = Failure::application("the worker has shut down").typed("WorkerShutdown");
            self.core.complete_activity(ActivityTaskCompletion {
                task_token: token,
                result: Some(ActivityExecutionResult::fail(failure_to_proto(&failure))),
            });
        }
        left
    }

    /// Returns how many attempts run.
    pub(crate) fn count(&self) -> usize {
        self.running.lock().len()
    }

    /// Asks all attempts that run to stop. Returns how many there are.
    pub(crate) fn ask_to_stop(&self) -> usize {
        self.stops.store(true, Ordering::SeqCst);
        let all: Vec<AttemptHandle> = self.running.lock().values().map(|running| running.handle.clone()).collect();
        all.iter().for_each(|handle| handle.cancel("the worker shuts down"));
        // Local work may also wait for its next attempt.
        self.player.runs_with_local_work().iter().for_each(|run_id| self.leave_run(run_id));
        all.len()
    }
}

/// Whether an attempt has ended because it was asked to.
fn was_stopped(ctx: &ActivityCtx, result: &Result<Payload, Failure>) -> bool {
    result.as_ref().is_err_and(|failure| failure.is_cancelled() && ctx.cancellation().is_some())
}

/// The facts of an attempt.
fn info(start: Start, queue: &Name) -> ActivityInfo {
    let run = start.workflow_execution.unwrap_or_default();
    let started = start.started_time.map(time_from_proto).unwrap_or_default();
    ActivityInfo {
        activity: start.activity_type.into(),
        activity_id: start.activity_id.into(),
        workflow: start.workflow_type.into(),
        workflow_id: run.workflow_id.into(),
        run_id: run.run_id.into(),
        queue: queue.clone(),
        attempt: start.attempt.max(1),
        scheduled: start.scheduled_time.map(time_from_proto).unwrap_or_default(),
        started,
        deadline: start.start_to_close_timeout.map(|timeout| started.after(duration_from_proto(timeout))),
        details: start.heartbeat_details.into_iter().next().map(payload_from_proto),
        headers: headers_from_proto(start.header_fields),
    }
}
