//! Activities, on a task queue or in the workflow's own process.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::operation::PendingOp;
use super::timer::Timer;
use crate::command::{Operation, ScheduleActivity, ScheduleLocalActivity};
use crate::options::{CancelType, Priority, Retry, Timeouts};
use crate::run::Value;
use crate::{CommandKind, Ctx, Failure, Headers, Name, Payload, Seq, ViolationKind};

impl Ctx {
    /// Schedules an activity. Its options can be set until it is first awaited.
    #[track_caller]
    pub fn activity(&self, activity: impl Into<Name>, input: impl Into<Payload>) -> Activity {
        self.activity_args(activity, vec![input.into()])
    }

    /// Schedules an activity with any number of arguments.
    #[track_caller]
    pub fn activity_args(&self, activity: impl Into<Name>, input: Vec<Payload>) -> Activity {
        let activity = activity.into();
        let op = self.schedule(Operation::Activity, activity.clone(), Location::caller(), |seq, id| {
            CommandKind::Activity(Arc::new(ScheduleActivity {
                seq,
                id,
                activity,
                input,
                headers: Headers::new(),
                queue: None,
                timeouts: Timeouts::default(),
                retry: None,
                cancel: CancelType::default(),
                priority: Priority::default(),
                summary: None,
            }))
        });
        Activity { op }
    }

    /// Runs an activity in the process that plays the workflow, between this turn and the next: for short work that
    /// needs no queue.
    #[track_caller]
    pub fn local_activity(&self, activity: impl Into<Name>, input: impl Into<Payload>) -> LocalActivity {
        self.local_activity_args(activity, vec![input.into()])
    }

    /// Runs a local activity with any number of arguments; see [`Ctx::local_activity`].
    #[track_caller]
    pub fn local_activity_args(&self, activity: impl Into<Name>, input: Vec<Payload>) -> LocalActivity {
        let site = Location::caller();
        let activity = activity.into();
        let command = ScheduleLocalActivity {
            seq: Seq::default(),
            id: Default::default(),
            activity,
            input,
            headers: Headers::new(),
            timeouts: Timeouts::default(),
            retry: None,
            local_retry_threshold: None,
            cancel: CancelType::default(),
            attempt: 1,
            first_scheduled: None,
            summary: None,
        };
        let op = self.schedule_local(&command, site);
        LocalActivity { ctx: self.clone(), command: Box::new(command), step: LocalStep::Attempt(op), site }
    }

    fn schedule_local(&self, command: &ScheduleLocalActivity, site: &'static Location<'static>) -> PendingOp {
        self.schedule(Operation::LocalActivity, command.activity.clone(), site, |seq, id| {
            CommandKind::LocalActivity(Box::new(ScheduleLocalActivity { seq, id, ..command.clone() }))
        })
    }
}

/// An activity on a task queue: await it for its result. Dropping it cancels the activity.
#[must_use = "dropping an activity cancels it; await it or call `.detach()`"]
pub struct Activity {
    op: PendingOp,
}

impl Activity {
    #[track_caller]
    fn change(mut self, change: impl FnOnce(&mut ScheduleActivity)) -> Self {
        self.op.set(Location::caller(), |command| match command {
            CommandKind::Activity(activity) => change(Arc::make_mut(activity)),
            _ => unreachable!("the command of an activity"),
        });
        self
    }

    /// Sets the task queue; the run's own by default.
    #[track_caller]
    pub fn queue(self, queue: impl Into<Name>) -> Self {
        self.change(|activity| activity.queue = Some(queue.into()))
    }

    /// Sets the retry policy.
    #[track_caller]
    pub fn retry(self, retry: Retry) -> Self {
        self.change(|activity| activity.retry = Some(retry))
    }

    /// Sets the longest time from now to the end of the last attempt.
    #[track_caller]
    pub fn schedule_to_close(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.schedule_to_close = Some(timeout))
    }

    /// Sets the longest time an attempt may wait in its queue.
    #[track_caller]
    pub fn schedule_to_start(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.schedule_to_start = Some(timeout))
    }

    /// Sets the longest time of one attempt.
    #[track_caller]
    pub fn start_to_close(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.start_to_close = Some(timeout))
    }

    /// Sets the longest time between two heartbeats.
    #[track_caller]
    pub fn heartbeat(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.heartbeat = Some(timeout))
    }

    /// Sets the effect of a cancellation.
    #[track_caller]
    pub fn cancel_type(self, cancel: CancelType) -> Self {
        self.change(|activity| activity.cancel = cancel)
    }

    /// Sets the priority of the task.
    #[track_caller]
    pub fn priority(self, priority: Priority) -> Self {
        self.change(|activity| activity.priority = priority)
    }

    /// Adds a header: metadata sent with the arguments.
    #[track_caller]
    pub fn header(self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
        self.change(|activity| drop(activity.headers.insert(name.into(), value.into())))
    }

    /// Sets a one-line description for people.
    #[track_caller]
    pub fn summary(self, summary: impl Into<String>) -> Self {
        self.change(|activity| activity.summary = Some(summary.into()))
    }

    /// Detaches the activity: it runs on, and its result is ignored.
    pub fn detach(self) {
        self.op.detach();
    }
}

impl Future for Activity {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.op.poll_outcome(cx)
    }
}

/// An activity in the workflow's own process: await it for its result. Dropping it cancels the activity.
#[must_use = "dropping an activity cancels it; await it or call `.detach()`"]
pub struct LocalActivity {
    ctx: Ctx,
    /// The command as the code asked for it, for attempts that follow a pause.
    command: Box<ScheduleLocalActivity>,
    step: LocalStep,
    site: &'static Location<'static>,
}

enum LocalStep {
    Attempt(PendingOp),
    /// A long pause between two attempts is a timer of the run.
    Pause(Timer),
}

impl LocalActivity {
    #[track_caller]
    fn change(mut self, change: impl Fn(&mut ScheduleLocalActivity)) -> Self {
        change(&mut self.command);
        let LocalStep::Attempt(op) = &mut self.step else {
            // A pause follows the first await, so the command is long sealed.
            let Some(state) = self.ctx.shared.enter(Location::caller()) else { return self };
            let command = CommandKind::LocalActivity(self.command).to_string();
            self.ctx.shared.misuse(state, ViolationKind::SealedSetter { command });
        };
        op.set(Location::caller(), |command| match command {
            CommandKind::LocalActivity(activity) => change(activity),
            _ => unreachable!("the command of a local activity"),
        });
        self
    }

    /// Sets the retry policy.
    #[track_caller]
    pub fn retry(self, retry: Retry) -> Self {
        self.change(|activity| activity.retry = Some(retry.clone()))
    }

    /// Sets the longest time from now to the end of the last attempt.
    #[track_caller]
    pub fn schedule_to_close(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.schedule_to_close = Some(timeout))
    }

    /// Sets the longest time an attempt may wait for a slot.
    #[track_caller]
    pub fn schedule_to_start(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.schedule_to_start = Some(timeout))
    }

    /// Sets the longest time of one attempt.
    #[track_caller]
    pub fn start_to_close(self, timeout: Duration) -> Self {
        self.change(|activity| activity.timeouts.start_to_close = Some(timeout))
    }

    /// Sets the threshold above which a pause becomes a timer of the run.
    #[track_caller]
    pub fn local_retry_threshold(self, threshold: Duration) -> Self {
        self.change(|activity| activity.local_retry_threshold = Some(threshold))
    }

    /// Sets the effect of a cancellation.
    #[track_caller]
    pub fn cancel_type(self, cancel: CancelType) -> Self {
        self.change(|activity| activity.cancel = cancel)
    }

    /// Sets a one-line description for people.
    #[track_caller]
    pub fn summary(self, summary: impl Into<String>) -> Self {
        let summary = summary.into();
        self.change(|activity| activity.summary = Some(summary.clone()))
    }

    /// Adds a header: metadata sent with the arguments.
    #[track_caller]
    pub fn header(self, name: impl Into<Name>, value: impl Into<Payload>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.change(|activity| drop(activity.headers.insert(name.clone(), value.clone())))
    }

    /// Detaches the activity: it runs on, and its result is ignored. A long pause between two attempts ends it, because
    /// no future is left to schedule the next attempt.
    pub fn detach(self) {
        if let LocalStep::Attempt(op) = self.step {
            op.detach();
        }
    }
}

impl Future for LocalActivity {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Each change of step is polled in the same poll: a future that returns without having been polled has no waker.
        loop {
            let next = match &mut self.step {
                LocalStep::Attempt(op) => match ready!(op.poll_value(cx))? {
                    Value::Outcome(outcome) => return Poll::Ready(outcome.into()),
                    Value::Backoff { attempt, pause, first_scheduled } => {
                        self.command.attempt = attempt;
                        self.command.first_scheduled = first_scheduled;
                        LocalStep::Pause(self.ctx.timer_at(pause, self.site))
                    }
                    other => unreachable!("the job was checked to fit the operation, yet brought {other:?}"),
                },
                LocalStep::Pause(timer) => {
                    ready!(Pin::new(timer).poll(cx))?;
                    LocalStep::Attempt(self.ctx.schedule_local(&self.command, self.site))
                }
            };
            self.step = next;
        }
    }
}
