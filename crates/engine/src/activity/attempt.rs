//! Attempts of activities: started when a place is free, judged when they end, tried again by their retry policy.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{
    ActivityFailed, Failure, FailureKind, Name, Outcome, Payload, RetryState, Seq, TimeoutKind, Timestamp,
};
use dacapo_store::{AttemptWrite, Doing, RunNo, Store, StoreError, Stuck, TaskRow, Write};
use dacapo_worker::{ActivityCtx, ActivityInfo, Attempt, Grip, QueueValues};

use crate::activity::retry::pause_after;
use crate::activity::task_queue::{Attempting, Task, TaskState};
use crate::crash_guard::quarantine::{MOST_STRIKES, words_on_quarantine};
use crate::inner::Inner;
use crate::read::records::LastRecord;
use crate::run::cached_run::{About, Arrival};
use crate::timer::wheel::{AlarmNo, Due};
use crate::turn::plan::encode;
use crate::turn::validate::fitting;

impl Task {
    pub(crate) fn grip(&self) -> Option<Grip> {
        match &self.state {
            TaskState::Running(attempting) => attempting.grip.clone(),
            _ => None,
        }
    }

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

    /// The queue it is in.
    pub(crate) fn queue(&self) -> &Name {
        self.command.queue.as_ref().unwrap_or(&self.about.queue)
    }

    /// When all attempts together must have ended.
    fn over(&self) -> Option<Timestamp> {
        self.command.timeouts.schedule_to_close.map(|timeout| self.scheduled.after(timeout))
    }
}

impl Inner {
    /// Starts what is ready, as far as there are places.
    pub(crate) fn dispatch(self: &Arc<Self>) {
        while self.trouble().is_none() && !self.is_draining() {
            let now = self.host.now();
            let next = self.desk().next(now);
            let Some((run, task)) = next else { return };
            let (seq, attempt, is_tried) = (task.command.seq, task.attempt, task.strikes > 0);
            self.start_attempt(run, task, now);
            if is_tried {
                self.limit_trial(run, seq, attempt, now);
            }
        }
    }

    fn start_attempt(self: &Arc<Self>, run: RunNo, task: Task, now: Timestamp) {
        let (seq, number) = (task.command.seq, task.attempt);
        let Some(activity) = self.options.registry.find_activity(&task.command.activity) else {
            self.desk().unserved(run, seq);
            return self.say_unserved(run, &task);
        };
        let input = match self.input_of(run, &task) {
            Ok(Some(input)) => input,
            Ok(None) => return self.without_input(run, &task),
            Err(error) => return self.halt(error.into()),
        };
        let this = Arc::downgrade(self);
        let heartbeats = {
            let this = this.clone();
            move |details: Payload| {
                if let Some(this) = this.upgrade() {
                    this.heartbeat(run, seq, number, details);
                }
            }
        };
        let ctx = ActivityCtx::new(info(&task, now), Arc::new(heartbeats));
        let seen = ctx.clone();
        let attempt = Attempt::new(activity, ctx, input, move |result| {
            let Some(this) = this.upgrade() else { return };
            match seen.is_left_to_others(&result) {
                true => this.attempt_left(run, seq, number),
                false => this.attempt_done(run, seq, number, result),
            }
        });
        let attempt = attempt.counted_by(self.worker(task.queue()).meters());
        let alarms = self.set_alarms(run, &task, now, now);
        let grip = attempt.grip();
        let held = self.desk().hold(run, seq, number, &grip, &alarms);
        match held {
            Some(cancelled) => {
                if let Some(reason) = cancelled {
                    grip.cancel(&reason);
                }
                self.note_running(Doing::Attempt(task.no), &grip);
                self.host.attempt(attempt);
            }
            // Whoever took it off the desk did not know of this attempt yet.
            None => self.cancel_alarms(&alarms),
        }
    }

    /// Sets the timeouts of an attempt that began then and was heard of then.
    fn set_alarms(&self, run: RunNo, task: &Task, began: Timestamp, heard: Timestamp) -> Vec<AlarmNo> {
        let (seq, attempt, timeouts) = (task.command.seq, task.attempt, &task.command.timeouts);
        let limits = [
            (began, timeouts.start_to_close, TimeoutKind::StartToClose),
            (heard, timeouts.heartbeat, TimeoutKind::Heartbeat),
        ];
        let alarm = |(since, timeout, kind): (Timestamp, Option<Duration>, _)| {
            timeout.map(|timeout| self.own_timer(since.after(timeout), Due::Attempt { run, seq, attempt, kind }))
        };
        limits.into_iter().filter_map(alarm).collect()
    }

    /// An activity waits for a program that serves its type. The run says so; it is not its fault.
    fn say_unserved(self: &Arc<Self>, run: RunNo, task: &Task) {
        let reason = self.words_on_unserved(task);
        self.tell_stuck(&task.about.workflow_id, &task.about.run_id, "", &reason);
        self.mark_waiting(run, task, reason);
    }

    /// Notes that a run waits for somebody to do something about one of its activities, if it does.
    pub(crate) fn mark_held(self: &Arc<Self>, run: RunNo) {
        let held = self.desk().held_of(run).cloned();
        if let Some(task) = held {
            let reason = match task.state {
                TaskState::Quarantined => words_on_quarantine(&task),
                _ => self.words_on_unserved(&task),
            };
            self.mark_waiting(run, &task, reason);
        }
    }

    /// Notes why a run waits for somebody to do something about one of its activities.
    pub(crate) fn mark_waiting(self: &Arc<Self>, run: RunNo, task: &Task, reason: String) {
        let now = self.host.now();
        let stuck = Stuck { reason: reason.clone(), since: now, attempts: 1, retry: now };
        let write = Write::Park { run, epoch: task.about.epoch, stuck: Some(stuck) };
        self.later(move |this| this.submit(write, move |this, _| this.waits().impatient(run, &reason)));
    }

    fn words_on_unserved(&self, task: &Task) -> String {
        let known: Vec<&str> = self.options.registry.activities().map(Name::as_str).collect();
        format!(
            "activity {:?} is not served here; served are: {}. Serve it in this program; the run goes on by itself then",
            task.command.activity,
            if known.is_empty() { "none".to_owned() } else { known.join(", ") },
        )
    }

    /// An attempt came to this.
    pub(crate) fn attempt_done(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32, result: Result<Payload, Failure>) {
        let result = fitting(result, self.options.payload_limit);
        let mut desk = self.desk();
        let Some((task, attempting)) = desk.attempting(run, seq, attempt) else { return };
        self.cancel_alarms(&attempting.alarms);
        let now = self.host.now();
        match result {
            Ok(result) => {
                let task = desk.remove(run, seq);
                drop(desk);
                self.resolve_task(run, task, Ok(result), RetryState::Unspecified);
            }
            // It stopped because the worker does: the next process tries it again, as if this attempt had not been.
            Err(_) if self.is_stopping(task.queue()) => {
                let report = attempting.unstored.then(|| attempt_write(task, now));
                desk.remove(run, seq);
                drop(desk);
                self.note_report(report);
            }
            Err(failure) => match judge(task, &failure, now) {
                Judged::Again(at) => {
                    task.failure = Some(failure);
                    desk.wait(run, seq, at);
                    let write = desk.get(run, seq).map(|task| attempt_write(task, at));
                    drop(desk);
                    self.try_again(run, seq, at, write, drop);
                }
                Judged::Over(why) => {
                    let task = desk.remove(run, seq);
                    drop(desk);
                    self.resolve_task(run, task, Err(failure), why);
                }
            },
        }
        self.dispatch();
        self.drained();
    }

    /// Notes an attempt that failed, and sets the clock for the next. `tell` is told when that is durable.
    pub(crate) fn try_again(
        self: &Arc<Self>,
        run: RunNo,
        seq: Seq,
        at: Timestamp,
        write: Option<AttemptWrite>,
        tell: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        let Some(write) = write else { return };
        let attempt = write.attempt;
        self.write_later(
            move |_| Some(Write::Attempt(Box::new(write))),
            move |this, result| {
                match &result {
                    // It is over, or its run is.
                    Err(StoreError::Refused(_)) => drop(this.desk().remove(run, seq)),
                    // A note that could not be written costs the count of an attempt, and not the attempt.
                    Ok(_) | Err(_) => {
                        this.own_timer(at, Due::Task { run, seq, attempt });
                    }
                }
                tell(result.map(drop));
            },
        );
    }

    fn resolve_task(
        self: &Arc<Self>,
        run: RunNo,
        task: Option<Task>,
        result: Result<Payload, Failure>,
        why: RetryState,
    ) {
        if let Some(task) = task {
            let outcome = task.outcome(result, why);
            self.deliver(run, Arrival::Result { task: task.no, seq: task.command.seq, outcome });
        }
    }

    /// An attempt has taken too long, or was silent for too long.
    pub(crate) fn attempt_timed_out(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32, kind: TimeoutKind) {
        let now = self.host.now();
        let mut desk = self.desk();
        let Some((task, attempting)) = desk.attempting(run, seq, attempt) else { return };
        let heartbeat = task.command.timeouts.heartbeat.map(|timeout| attempting.last_heartbeat.after(timeout));
        if let (TimeoutKind::Heartbeat, Some(deadline)) = (kind, heartbeat)
            && deadline > now
        {
            drop(desk);
            self.own_timer(deadline, Due::Attempt { run, seq, attempt, kind });
            return;
        }
        drop(desk);
        let words = match kind {
            TimeoutKind::Heartbeat => "the attempt was silent for too long (heartbeat timeout)",
            _ => "the attempt took too long (start-to-close timeout)",
        };
        let failure = Failure::new(FailureKind::Timeout(kind), words);
        match attempting.grip {
            Some(grip) => {
                grip.finish(Err(failure));
                self.give_up(&grip, words);
            }
            // Its time was over before it began.
            None => self.attempt_done(run, seq, attempt, Err(failure)),
        }
    }

    /// An activity has used up the time that was set for all its attempts, or for the wait before the first. Says whether
    /// it was pending.
    pub(crate) fn task_timed_out(self: &Arc<Self>, run: RunNo, seq: Seq, kind: TimeoutKind) -> bool {
        let mut desk = self.desk();
        let Some(task) = desk.get(run, seq) else { return false };
        let begins = match task.state {
            TaskState::Running(_) | TaskState::Outside(_) | TaskState::Waiting { .. } => true,
            // An earlier process left it, and nothing keeps it from beginning now.
            TaskState::Ready => task.attempt > 1 || desk.has_place(task.queue()),
            TaskState::Unserved | TaskState::Quarantined => false,
        };
        if kind == TimeoutKind::ScheduleToStart && begins {
            return true;
        }
        let task = desk.remove(run, seq);
        drop(desk);
        if let Some(task) = task {
            self.end_task_late(run, task, kind);
        }
        self.dispatch();
        true
    }

    /// The same for an activity in a queue that is not served here: whoever serves it has not taken it in time.
    pub(crate) fn task_elsewhere_timed_out(
        self: &Arc<Self>,
        run: RunNo,
        seq: Seq,
        kind: TimeoutKind,
    ) -> Result<bool, StoreError> {
        let rows = self.store.tasks_of(run)?;
        let Some(row) = rows.iter().find(|row| row.seq == seq && !self.serves(&row.queue)) else { return Ok(false) };
        let Some(task) = self.read_task(row, &mut Origins::default())? else { return Ok(false) };
        self.end_task_late(run, task, kind);
        Ok(true)
    }

    fn end_task_late(self: &Arc<Self>, run: RunNo, task: Task, kind: TimeoutKind) {
        let words = match kind {
            TimeoutKind::ScheduleToStart => "no attempt began in time (schedule-to-start timeout)",
            _ => "all attempts together took too long (schedule-to-close timeout)",
        };
        if let Some(grip) = task.grip() {
            self.give_up(&grip, words);
        }
        let mut failure = Failure::new(FailureKind::Timeout(kind), words);
        if let Some(last) = task.failure.clone() {
            failure = failure.caused_by(last);
        }
        self.resolve_task(run, Some(task), Err(failure), RetryState::Timeout);
    }

    /// An attempt reports its progress. The first report is stored at once, later ones at most once in a while; of those
    /// that come in between the last one counts.
    pub(crate) fn heartbeat(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32, details: Payload) {
        let now = self.host.now();
        let mut desk = self.desk();
        let Some((task, mut attempting)) = desk.attempting(run, seq, attempt) else { return };
        attempting.last_heartbeat = now;
        task.details = Some(details);
        let pause = pause_between_reports(task, self.worker(task.queue()).values());
        let due = attempting.stored.map(|stored| stored.after(pause));
        match due.filter(|due| *due > now) {
            None => self.store_report(run, task, attempting, now),
            Some(_) if attempting.unstored => task.set_attempting(attempting),
            Some(due) => {
                attempting.unstored = true;
                attempting.alarms.push(self.own_timer(due, Due::Report { run, seq, attempt }));
                task.set_attempting(attempting);
            }
        }
    }

    /// The pause after the last report that was stored is over.
    pub(crate) fn report_due(self: &Arc<Self>, run: RunNo, seq: Seq, attempt: u32) {
        let now = self.host.now();
        let mut desk = self.desk();
        if let Some((task, attempting)) = desk.attempting(run, seq, attempt) {
            self.store_report(run, task, attempting, now);
        }
    }

    fn store_report(self: &Arc<Self>, run: RunNo, task: &mut Task, mut attempting: Attempting, now: Timestamp) {
        attempting.stored = Some(now);
        attempting.unstored = false;
        task.set_attempting(attempting);
        let (seq, attempt, write) = (task.command.seq, task.attempt, attempt_write(task, now));
        let write = move |this: &Arc<Self>| {
            // As it stands by then: the attempt may have been left to somebody outside, or another may be next.
            let task = this.desk().get(run, seq).cloned();
            let write = match &task {
                Some(task) if task.attempt == attempt => attempt_write(task, now),
                Some(_) => return None,
                None => write,
            };
            Some(Write::Attempt(Box::new(write)))
        };
        self.write_later(write, |_, _| {});
    }

    /// Stores what an attempt reported last.
    fn note_report(self: &Arc<Self>, report: Option<AttemptWrite>) {
        if let Some(report) = report {
            self.write_later(move |_| Some(Write::Attempt(Box::new(report))), |_, _| {});
        }
    }

    /// Stores what attempts that are left behind have reported and nobody has stored.
    pub(crate) fn note_reports(self: &Arc<Self>, tasks: &[Task]) {
        let now = self.host.now();
        for task in tasks {
            if matches!(&task.state, TaskState::Running(attempting) if attempting.unstored) {
                self.note_report(Some(attempt_write(task, now)));
            }
        }
    }

    /// A workflow no longer wants an activity.
    pub(crate) fn cancel_task(self: &Arc<Self>, run: RunNo, seq: Seq, waits: bool) {
        let reason = "the workflow no longer wants it";
        let mut desk = self.desk();
        let runs = desk.get(run, seq).is_some_and(|task| task.attempting().is_some());
        if waits && runs {
            let task = desk.get_mut(run, seq).expect("the task was just seen");
            task.cancelled = Some(reason.to_owned());
            let grip = task.grip();
            drop(desk);
            if let Some(grip) = grip {
                grip.cancel(reason);
            }
            return;
        }
        let task = desk.remove(run, seq);
        drop(desk);
        if waits {
            let failure = Failure::new(FailureKind::Cancelled, reason);
            return self.resolve_task(run, task, Err(failure), RetryState::CancelRequested);
        }
        if let Some(grip) = task.and_then(|task| task.grip()) {
            self.give_up(&grip, reason);
        }
    }

    /// Takes over a task that an earlier process left.
    pub(crate) fn adopt(self: &Arc<Self>, row: &TaskRow, origins: &mut Origins) -> Result<(), StoreError> {
        let Some(task) = self.read_task(row, origins)? else { return Ok(()) };
        let (run, seq) = (row.run, row.seq);
        match task.state {
            TaskState::Waiting { until } => {
                self.own_timer(until, Due::Task { run, seq, attempt: task.attempt });
                self.desk().add(run, task);
            }
            TaskState::Outside(ref attempting) => {
                let (began, heard) = (attempting.started, attempting.last_heartbeat);
                let alarms = self.set_alarms(run, &task, began, heard);
                let mut attempting = attempting.clone();
                attempting.alarms = alarms;
                self.desk().add(run, Task { state: TaskState::Outside(attempting), ..task });
            }
            TaskState::Quarantined => {
                self.desk().add(run, task.clone());
                self.say_quarantined(run, &task)?;
            }
            TaskState::Ready | TaskState::Running(_) | TaskState::Unserved => self.desk().add(run, task),
        }
        Ok(())
    }

    /// Reads what a stored task is from the turn that asked for it.
    fn read_task(&self, row: &TaskRow, origins: &mut Origins) -> Result<Option<Task>, StoreError> {
        let Some(about) = origins.about(&*self.store, row.run)? else { return Ok(None) };
        let record = origins.record.get(&*self.store, row.run, row.turn)?;
        let command = record.and_then(|record| record.commands.get(row.position as usize));
        let Some((dacapo_core::CommandKind::Activity(command), record)) =
            command.map(|command| &command.kind).zip(record)
        else {
            tracing::error!(run = %row.run, task = ?row.no, "the command behind a task cannot be read");
            return Ok(None);
        };
        let now = self.host.now();
        let state = match row.outside {
            // Nobody could report while nobody served, so its silence begins now.
            Some(began) => TaskState::Outside(Attempting { last_heartbeat: now, ..Attempting::since(began) }),
            None if row.strikes >= MOST_STRIKES => TaskState::Quarantined,
            None if row.ready > now => TaskState::Waiting { until: row.ready },
            None => TaskState::Ready,
        };
        Ok(Some(Task {
            no: row.no,
            about,
            command: Arc::new((**command).clone()),
            has_input: true,
            origin: (row.turn, row.position),
            scheduled: record.now,
            priority: row.priority,
            attempt: row.attempt,
            failure: row.failure.as_deref().and_then(|bytes| minicbor::decode(bytes).ok()),
            details: row.details.as_deref().and_then(|bytes| minicbor::decode(bytes).ok()),
            state,
            cancelled: None,
            strikes: row.strikes,
        }))
    }
}

/// Where tasks come from, as they are read one after the other: those of a run mostly follow each other.
#[derive(Default)]
pub(crate) struct Origins {
    about: Option<(RunNo, Arc<About>)>,
    record: LastRecord,
}

impl Origins {
    fn about(&mut self, store: &dyn Store, run: RunNo) -> Result<Option<Arc<About>>, StoreError> {
        if let Some((_, about)) = self.about.as_ref().filter(|(of, _)| *of == run) {
            return Ok(Some(about.clone()));
        }
        let about = store.run(run)?.and_then(|row| About::of(&row).ok()).map(Arc::new);
        self.about = about.clone().map(|about| (run, about));
        Ok(about)
    }
}

/// How long after a stored report the next is stored: well before the attempt would count as silent.
fn pause_between_reports(task: &Task, values: &QueueValues) -> Duration {
    let without = values.default_heartbeat_throttle_interval;
    let pause = task.command.timeouts.heartbeat.map_or(without, |timeout| timeout.mul_f64(0.8));
    pause.min(values.max_heartbeat_throttle_interval)
}

pub(crate) enum Judged {
    Again(Timestamp),
    Over(RetryState),
}

/// Whether a failed attempt is followed by another.
pub(crate) fn judge(task: &Task, failure: &Failure, now: Timestamp) -> Judged {
    if task.cancelled.is_some() {
        return Judged::Over(RetryState::CancelRequested);
    }
    let Some(retry) = &task.command.retry else { return Judged::Over(RetryState::RetryPolicyNotSet) };
    match pause_after(retry, task.attempt, failure) {
        Some(pause) => {
            let at = now.after(pause);
            if task.over().is_some_and(|over| at >= over) {
                return Judged::Over(RetryState::Timeout);
            }
            Judged::Again(at)
        }
        None if retry.attempts > 0 && task.attempt >= retry.attempts => {
            Judged::Over(RetryState::MaximumAttemptsReached)
        }
        None => Judged::Over(RetryState::NonRetryableFailure),
    }
}

pub(crate) fn attempt_write(task: &Task, ready: Timestamp) -> AttemptWrite {
    AttemptWrite {
        task: task.no,
        attempt: task.attempt,
        ready,
        holder: None,
        strikes: task.strikes,
        outside: task.outside(),
        failure: task.failure.as_ref().map(encode),
        details: task.details.as_ref().map(encode),
    }
}

fn info(task: &Task, now: Timestamp) -> ActivityInfo {
    let Task { about, command, .. } = task;
    ActivityInfo {
        activity: command.activity.clone(),
        activity_id: command.id.to_string().into(),
        workflow: about.workflow.clone(),
        workflow_id: about.workflow_id.clone(),
        run_id: about.run_id.clone(),
        queue: task.queue().clone(),
        attempt: task.attempt,
        scheduled: task.scheduled,
        started: now,
        deadline: command.timeouts.start_to_close.map(|timeout| now.after(timeout)),
        details: task.details.clone(),
    }
}
