//! Attempts of side effects: closures of workflows, which come as local activities of a reserved type.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Failure, FailureKind, Headers, Name, Payload, RunClosure, TimeoutKind, Timestamp};
use dacapo_worker::{ActivityCtx, ActivityInfo, Attempt, pause_after};

use super::Activities;
use crate::convert::{failure_to_proto, payload_to_proto};
use crate::player::side_effects::{NextAttempt, another_attempt, no_closure};
use crate::proto::activity::ActivityExecutionResult;
use crate::proto::task::Start;
use crate::reserved::SIDE_EFFECT;

impl Activities {
    pub(super) fn begin_side_effect(self: &Arc<Self>, token: Vec<u8>, start: Start, name: &str) {
        let run = start.workflow_execution.clone().unwrap_or_default();
        let taken = self.player.closures.take(&run.run_id, &start.activity_id);
        let Some((next, Some(closure))) = taken else {
            // The run is played again when it can be, and has the closure anew.
            return self.complete(token, ActivityExecutionResult::fail(failure_to_proto(&no_closure())));
        };
        let now = self.host.now();
        let info = info(&next, start, name, self.worker.queue().clone(), now);
        let ctx = self.ctx(&token, info, true);
        let limit = limit(&next, now);
        let (this, ended, of_token) = (self.clone(), ctx.clone(), token.clone());
        let done = move |result| this.side_effect_ended(of_token, &ended, &next, result);
        self.run(token, SIDE_EFFECT, true, Attempt::of_future(ctx, Box::pin(within(limit, closure)), done));
    }

    fn side_effect_ended(
        &self,
        token: Vec<u8>,
        ctx: &ActivityCtx,
        next: &NextAttempt,
        result: Result<Payload, Failure>,
    ) {
        if self.is_left_to_the_next_worker(&token, ctx, &result) {
            drop(self.running.lock().remove(&token));
            return self.leave_run(&ctx.info().run_id);
        }
        let result = match result {
            Ok(value) => ActivityExecutionResult::ok(payload_to_proto(&value)),
            Err(failure) => {
                let pause = pause(next, &failure, self.host.now());
                let failure =
                    pause.map_or_else(|| failure.clone().non_retryable(), |pause| another_attempt(&failure, pause));
                ActivityExecutionResult::fail(failure_to_proto(&failure))
            }
        };
        self.complete(token, result);
    }
}

/// The facts of an attempt.
fn info(next: &NextAttempt, start: Start, name: &str, queue: Name, now: Timestamp) -> ActivityInfo {
    let run = start.workflow_execution.unwrap_or_default();
    ActivityInfo {
        activity: Name::from(name.to_owned()),
        activity_id: next.command.id.to_string().into(),
        workflow: start.workflow_type.into(),
        workflow_id: run.workflow_id.into(),
        run_id: run.run_id.into(),
        queue,
        attempt: next.attempt,
        scheduled: next.first_scheduled,
        started: now,
        deadline: next.command.timeouts.start_to_close.map(|timeout| now.after(timeout)),
        details: None,
        headers: Headers::new(),
    }
}

/// The time that an attempt may take, and the timeout that it is.
fn limit(next: &NextAttempt, now: Timestamp) -> Option<(Duration, TimeoutKind)> {
    let timeouts = &next.command.timeouts;
    let rest = timeouts.schedule_to_close.map(|limit| next.first_scheduled.after(limit).since(now));
    let limits = [
        timeouts.start_to_close.map(|limit| (limit, TimeoutKind::StartToClose)),
        rest.map(|limit| (limit, TimeoutKind::ScheduleToClose)),
    ];
    limits.into_iter().flatten().min_by_key(|(limit, _)| *limit)
}

async fn within(limit: Option<(Duration, TimeoutKind)>, closure: RunClosure) -> Result<Payload, Failure> {
    // The closure is called within the attempt: it is user code, and may panic.
    let work = async move { closure().await };
    let Some((limit, kind)) = limit else { return work.await };
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(Failure::new(FailureKind::Timeout(kind), format!("it took too long ({kind:?})"))),
    }
}

/// The pause before the next attempt. None if no other follows.
fn pause(next: &NextAttempt, failure: &Failure, now: Timestamp) -> Option<Duration> {
    let pause = pause_after(next.command.retry.as_ref()?, next.attempt, failure)?;
    let over = next.command.timeouts.schedule_to_close.map(|limit| next.first_scheduled.after(limit));
    over.is_none_or(|over| now.after(pause) < over).then_some(pause)
}
