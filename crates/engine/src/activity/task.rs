//! One pending activity: its command, its state, and how its attempts end.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{
    ActivityFailed, Failure, FailureKind, Name, Outcome, Payload, Retried, RetryState, ScheduleActivity, TimeoutKind,
    Timestamp,
};
use dacapo_store::{AttemptWrite, TaskNo};
use dacapo_worker::{ActivityInfo, AttemptHandle, pause_after};

use crate::encode::encode;
use crate::host::Steady;
use crate::run::info::RunInfo;
use crate::timer::wheel::AlarmNo;

/// The reason for which an activity is cancelled that its workflow has cancelled.
pub(crate) const UNWANTED: &str = "the workflow no longer wants it";

/// An activity that is pending.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) no: TaskNo,
    pub(crate) info: Arc<RunInfo>,
    pub(crate) command: Arc<ScheduleActivity>,
    /// Whether the command still has its input; otherwise the input is read again from `origin`.
    pub(crate) has_input: bool,
    /// The turn that scheduled it, and the command's position in that turn.
    pub(crate) origin: (u64, u32),
    pub(crate) scheduled: Timestamp,
    /// When all its attempts together must have ended, in steady time.
    pub(crate) over: Option<Steady>,
    pub(crate) priority: i32,
    /// The attempt that runs, or that comes next, from 1.
    pub(crate) attempt: u32,
    pub(crate) failure: Option<Failure>,
    pub(crate) details: Option<Payload>,
    pub(crate) state: TaskState,
    /// Why it was asked to stop, if the workflow cancelled it and waits for its outcome.
    pub(crate) cancelled: Option<String>,
    /// How often its process died while an attempt ran, since an attempt last ended or made progress.
    pub(crate) crash_count: u32,
}

#[derive(Clone)]
pub(crate) enum TaskState {
    /// It waits for its next attempt, or until its delay because of crashes is over.
    Waiting {
        until: Timestamp,
    },
    Ready,
    Running(Attempting),
    /// Its code has ended, and the holder of its token completes the attempt. It takes no place.
    External(Attempting),
    /// Its queue is served here, its type is not.
    Unserved,
    /// Its process died too often while it ran: it waits until an operator releases it.
    Quarantined,
}

/// An attempt that runs here or is external.
#[derive(Clone)]
pub(crate) struct Attempting {
    pub(crate) handle: Option<AttemptHandle>,
    pub(crate) started: Timestamp,
    pub(crate) last_heartbeat: Timestamp,
    /// When the attempt began or last reported, in steady time.
    pub(crate) heard: Steady,
    /// When it must have ended, in steady time.
    pub(crate) deadline: Option<Steady>,
    /// When reported progress was last stored; none before the first report.
    pub(crate) stored: Option<Steady>,
    /// Whether a report came in since; it is stored when the pause between two reports is over.
    pub(crate) unstored: bool,
    /// The alarms of its timeouts.
    pub(crate) alarms: Vec<AlarmNo>,
    /// Whether its code has left it to external completion, and the engine is about to store that.
    pub(crate) leaves: bool,
}

impl Attempting {
    /// Creates an attempt that begins now.
    pub(crate) fn new(started: Timestamp, steady: Steady) -> Self {
        Self {
            handle: None,
            started,
            last_heartbeat: started,
            heard: steady,
            deadline: None,
            stored: None,
            unstored: false,
            alarms: Vec::new(),
            leaves: false,
        }
    }
}

/// The step after a failed attempt.
#[derive(Debug, PartialEq)]
pub(crate) enum AfterFailure {
    /// Another attempt, not before this time.
    Retry(Timestamp),
    /// No other attempt.
    End(RetryState),
}

impl Task {
    /// The attempt that runs here or is external.
    pub(crate) fn attempting(&self) -> Option<&Attempting> {
        match &self.state {
            TaskState::Running(attempting) | TaskState::External(attempting) => Some(attempting),
            TaskState::Waiting { .. } | TaskState::Ready | TaskState::Unserved | TaskState::Quarantined => None,
        }
    }

    /// The attempt that runs here or is external, mutable.
    pub(crate) fn attempting_mut(&mut self) -> Option<&mut Attempting> {
        match &mut self.state {
            TaskState::Running(attempting) | TaskState::External(attempting) => Some(attempting),
            TaskState::Waiting { .. } | TaskState::Ready | TaskState::Unserved | TaskState::Quarantined => None,
        }
    }

    /// Whether it waits because of its crash count. A task that waits for its next attempt after a failure has none.
    pub(crate) fn is_delayed(&self) -> bool {
        matches!(self.state, TaskState::Waiting { .. }) && self.crash_count > 0
    }

    /// Whether it is quarantined or delayed because of its crash count, so that a release has it run at once.
    pub(crate) fn needs_release(&self) -> bool {
        matches!(self.state, TaskState::Quarantined) || self.is_delayed()
    }

    /// Whether an attempt runs here.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, TaskState::Running(_))
    }

    /// The handle of the attempt that runs here.
    pub(crate) fn handle(&self) -> Option<AttemptHandle> {
        match &self.state {
            TaskState::Running(attempting) => attempting.handle.clone(),
            _ => None,
        }
    }

    /// The queue it is in.
    pub(crate) fn queue(&self) -> &Name {
        self.command.queue.as_ref().unwrap_or(&self.info.name.queue)
    }

    /// The timeout that is due by now, if one is: the attempt's result is too late.
    pub(crate) fn overdue(&self, steady: Steady) -> Option<TimeoutKind> {
        let attempting = self.attempting()?;
        let silent = self.command.timeouts.heartbeat.map(|timeout| attempting.heard.after(timeout));
        let is_due = |at: Option<Steady>| at.is_some_and(|at| at <= steady);
        match () {
            () if is_due(self.over) => Some(TimeoutKind::ScheduleToClose),
            () if is_due(attempting.deadline) => Some(TimeoutKind::StartToClose),
            () if is_due(silent) => Some(TimeoutKind::Heartbeat),
            () => None,
        }
    }

    /// Decides whether another attempt follows a failed one.
    pub(crate) fn next_after(&self, failure: &Failure, (now, steady): (Timestamp, Steady)) -> AfterFailure {
        if self.cancelled.is_some() {
            return AfterFailure::End(RetryState::CancelRequested);
        }
        let Some(retry) = &self.command.retry else { return AfterFailure::End(RetryState::RetryPolicyNotSet) };
        match pause_after(retry, self.attempt, failure) {
            Some(pause) => {
                if self.over.is_some_and(|over| steady.after(pause) >= over) {
                    return AfterFailure::End(RetryState::Timeout);
                }
                AfterFailure::Retry(now.after(pause))
            }
            None if retry.attempts > 0 && self.attempt >= retry.attempts => {
                AfterFailure::End(RetryState::MaximumAttemptsReached)
            }
            None => AfterFailure::End(RetryState::NonRetryableFailure),
        }
    }

    /// Converts the last attempt's result into the outcome that the workflow gets.
    pub(crate) fn outcome(&self, result: Result<Payload, Failure>, retry: RetryState) -> Outcome {
        match result {
            Ok(result) => Outcome::Completed(result),
            Err(failure) => {
                let command = &self.command;
                let id = command.id.to_string().into();
                let about = ActivityFailed { activity: command.activity.clone(), id, retry };
                let message = format!("activity {} failed", command.activity);
                let wrapped = Failure::new(FailureKind::Activity(Box::new(about)), message).caused_by(failure);
                Outcome::Failed(Box::new(wrapped))
            }
        }
    }

    /// Makes the write that stores the task between two attempts, or an attempt's progress.
    pub(crate) fn write(&self, ready: Timestamp) -> AttemptWrite {
        let is_external = |attempting: &&Attempting| attempting.leaves || matches!(self.state, TaskState::External(_));
        AttemptWrite {
            task: self.no,
            attempt: self.attempt,
            ready,
            node: None,
            crash_count: self.crash_count,
            external: self.attempting().filter(is_external).map(|attempting| attempting.started),
            failure: self.failure.as_ref().map(encode),
            details: self.details.as_ref().map(encode),
        }
    }

    /// The attempts so far and the last failure, if there was more than one.
    pub(crate) fn retried(&self) -> Option<Box<Retried>> {
        // The number is raised when the task begins to wait for its next attempt.
        let attempts = if self.attempting().is_some() { self.attempt } else { self.attempt.saturating_sub(1) };
        (attempts > 1).then(|| Box::new(Retried { attempts, last_failure: self.failure.clone() }))
    }

    /// The information that its next attempt gets.
    pub(crate) fn attempt_info(&self, now: Timestamp) -> ActivityInfo {
        let Self { info, command, .. } = self;
        ActivityInfo {
            activity: command.activity.clone(),
            activity_id: command.id.to_string().into(),
            workflow: info.name.workflow.clone(),
            workflow_id: info.name.workflow_id.clone(),
            run_id: info.name.run_id.clone(),
            queue: self.queue().clone(),
            attempt: self.attempt,
            scheduled: self.scheduled,
            started: now,
            deadline: command.timeouts.start_to_close.map(|timeout| now.after(timeout)),
            details: self.details.clone(),
            headers: command.headers.clone(),
        }
    }

    /// The pause between two stored reports: shorter than the heartbeat timeout, if there is one.
    pub(crate) fn pause_between_reports(&self, default: Duration, longest: Duration) -> Duration {
        let pause = self.command.timeouts.heartbeat.map_or(default, |timeout| timeout.mul_f64(0.8));
        pause.min(longest)
    }
}

/// Computes when all attempts of an activity must have ended, in steady time.
pub(crate) fn over(
    command: &ScheduleActivity,
    scheduled: Timestamp,
    (now, steady): (Timestamp, Steady),
) -> Option<Steady> {
    command.timeouts.schedule_to_close.map(|timeout| steady.after(scheduled.after(timeout).since(now)))
}

/// A timeout as the failure of an attempt or of a whole activity.
pub(crate) fn timeout(kind: TimeoutKind) -> Failure {
    let words = match kind {
        TimeoutKind::Heartbeat => "the attempt was silent for too long (heartbeat timeout)",
        TimeoutKind::ScheduleToStart => "no attempt began in time (schedule-to-start timeout)",
        TimeoutKind::ScheduleToClose => "all attempts together took too long (schedule-to-close timeout)",
        _ => "the attempt took too long (start-to-close timeout)",
    };
    Failure::new(FailureKind::Timeout(kind), words)
}
