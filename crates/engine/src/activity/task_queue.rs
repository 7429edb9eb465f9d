//! The task queue: every activity that is pending, and which of them run now.
//!
//! ```text
//!            a place is free            it failed, and its retry policy allows another attempt
//!   Ready ──────────────────▶ Running ──────────────────────────────────────▶ Waiting ──▶ Ready
//!     │                          │
//!     │ its type is not served   ├──▶ gone: its outcome is on its way to the run
//!     ▼                          │
//!   Unserved                     └──▶ External ──▶ gone, or Waiting
//!             its code has left it to the holder of its token
//! ```
//!
//! A task whose process died too often while it ran is `Quarantined` from the beginning; when it is released, it is `Ready`.
//! Tasks are rows of the store; the queue holds all of those that are pending, so that none has to be claimed or polled.
//!
//! Tasks whose process died while they ran are on probation: of all of them one runs at a time, those with the lowest crash
//! count first, so that those that merely ran beside the one that killed the process clear themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use dacapo_client::PendingActivity;
use dacapo_core::{Failure, Name, Payload, RetryState, Seq, TimeoutKind, Timestamp};
use dacapo_store::{AttemptWrite, RunNo, TaskNo};
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::AttemptHandle;

use crate::activity::pending::pending_activity;
use crate::activity::task::{AfterFailure, Attempting, Task, TaskState, timeout};
use crate::activity::task_table::{Key, Lane, TaskTable, lane};
use crate::host::Steady;
use crate::timer::wheel::AlarmNo;

/// Every activity that is pending.
pub(crate) struct TaskQueue(pub(super) Mutex<TaskTable>);

/// The end of an attempt.
pub(crate) struct EndedAttempt {
    /// The alarms of its timeouts, which are not needed any more.
    pub(crate) alarms: Vec<AlarmNo>,
    pub(crate) then: AfterAttempt,
}

/// The step after the end of an attempt.
pub(crate) enum AfterAttempt {
    /// The activity has ended with this result.
    End { task: Box<Task>, result: Result<Payload, Failure>, retry: RetryState },
    /// Another attempt follows, not before this time.
    Retry { at: Timestamp, write: AttemptWrite },
    /// The attempt stopped because the worker shuts down: the next process makes it again. Holds the write of its last
    /// report, if that is not stored yet.
    LeftToNextProcess(Option<AttemptWrite>),
}

/// The result of a report of progress.
pub(crate) enum Report {
    /// The report is stored now.
    Store(AttemptWrite),
    /// The report is stored after this pause.
    StoreLater(Duration),
    /// The write that is due for an earlier report stores this one too.
    Kept,
}

/// The result of a timeout of an attempt.
pub(crate) enum AttemptTimeout {
    /// The attempt reported meanwhile, and has so long from now.
    Extended(Duration),
    /// The attempt has timed out.
    Over(Option<AttemptHandle>),
}

/// The result of a timeout of a whole activity.
pub(crate) enum TaskTimeout {
    /// The activity is not pending here.
    NotHere,
    /// The activity began in time.
    Began,
    /// The machine's clock was set forward: the activity has so long from now.
    Early(Duration),
    Over(Box<Task>),
}

/// The result of cancelling a task.
pub(crate) enum CancelledTask {
    /// Its attempt is asked to stop, and the workflow waits for its outcome.
    Asked(Option<AttemptHandle>),
    /// The task was removed.
    Removed(Box<Task>),
    /// The task was removed before.
    Gone,
}

impl TaskQueue {
    /// Creates the task queue for these queues, each with the number of tasks that run at a time.
    pub(crate) fn new(queues: impl IntoIterator<Item = (Name, usize)>) -> Self {
        let lanes = queues.into_iter().map(|(queue, places)| Lane::new(queue, places)).collect();
        Self(Mutex::new(ranks::TASK_QUEUE, TaskTable { lanes, ..TaskTable::default() }))
    }

    /// Adds a task.
    pub(crate) fn add(&self, run: RunNo, mut task: Task) {
        let state = &mut *self.0.lock();
        let key = (run, task.command.seq);
        if state.tasks.contains_key(&key) {
            // A run that is reset may have been played before its tasks were taken over.
            return;
        }
        state.inputs.add(&mut task);
        match task.state {
            TaskState::Ready => state.enlist(key, &task),
            TaskState::Quarantined => state.quarantined += 1,
            _ => {}
        }
        state.delayed += usize::from(task.is_delayed());
        state.of_run.entry(run).or_default().insert(key.1);
        state.ids.insert((run, task.command.id), key.1);
        state.tasks.insert(key, task);
    }

    /// A copy of a task in its current state.
    pub(crate) fn get(&self, run: RunNo, seq: Seq) -> Option<Task> {
        self.0.lock().tasks.get(&(run, seq)).cloned()
    }

    /// The number of a task.
    pub(crate) fn number(&self, run: RunNo, seq: Seq) -> Option<TaskNo> {
        self.0.lock().tasks.get(&(run, seq)).map(|task| task.no)
    }

    /// The task of an activity by its id.
    pub(crate) fn find(&self, run: RunNo, activity_id: &str) -> Option<Task> {
        let state = self.0.lock();
        let seq = state.ids.get(&(run, activity_id.parse().ok()?))?;
        state.tasks.get(&(run, *seq)).cloned()
    }

    /// The pending activities of a run, in order.
    pub(crate) fn pending(&self, run: RunNo) -> Vec<PendingActivity> {
        let state = self.0.lock();
        let seqs = state.of_run.get(&run).into_iter().flatten();
        seqs.filter_map(|seq| state.tasks.get(&(run, *seq))).map(pending_activity).collect()
    }

    /// Removes a task.
    pub(crate) fn remove(&self, run: RunNo, seq: Seq) -> Option<Task> {
        self.0.lock().remove((run, seq))
    }

    /// Removes the tasks of a run for which `is_over` holds.
    pub(crate) fn remove_of_run(&self, run: RunNo, is_over: impl Fn(TaskNo) -> bool) -> Vec<Task> {
        let state = &mut *self.0.lock();
        let seqs: Vec<Seq> = state.of_run.get(&run).into_iter().flatten().copied().collect();
        let over = |seq: &Seq| state.tasks.get(&(run, *seq)).is_some_and(|task| is_over(task.no));
        let seqs: Vec<Seq> = seqs.into_iter().filter(over).collect();
        seqs.into_iter().filter_map(|seq| state.remove((run, seq))).collect()
    }

    /// Takes the next task to run, if a place is free. It counts as running from now on.
    pub(crate) fn next(&self, now: Timestamp, steady: Steady) -> Option<(RunNo, Task)> {
        let state = &mut *self.0.lock();
        let key = state.next_with_crash_count().or_else(|| state.next_ready())?;
        let task = state.tasks.get_mut(&key)?;
        task.state = TaskState::Running(Attempting::new(now, steady));
        Some((key.0, task.clone()))
    }

    /// Notes the handle and the alarms of an attempt that is about to start. None if the task was removed meanwhile;
    /// otherwise the reason for which it was asked to stop, if it was.
    pub(crate) fn begin(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        handle: &AttemptHandle,
        alarms: &[AlarmNo],
        (now, steady): (Timestamp, Steady),
    ) -> Option<Option<String>> {
        let mut state = self.0.lock();
        let task = state.attempting(run, seq, attempt)?;
        let deadline = task.command.timeouts.start_to_close.map(|limit| steady.after(limit));
        let attempting = task.attempting_mut()?;
        attempting.handle = Some(handle.clone());
        // The task may have waited for its input since it was taken.
        (attempting.started, attempting.last_heartbeat, attempting.heard) = (now, now, steady);
        attempting.deadline = deadline;
        attempting.alarms.extend_from_slice(alarms);
        Some(task.cancelled.clone())
    }

    /// Adds an alarm to an attempt that runs.
    pub(crate) fn add_alarm(&self, (run, seq, attempt): (RunNo, Seq, u32), alarm: AlarmNo) {
        let mut state = self.0.lock();
        if let Some(attempting) = state.attempting(run, seq, attempt).and_then(Task::attempting_mut) {
            attempting.alarms.push(alarm);
        }
    }

    /// Ends an attempt with this result. An attempt that ends after one of its timeouts was due counts as timed out.
    pub(crate) fn end_attempt(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        result: Result<Payload, Failure>,
        (now, steady): (Timestamp, Steady),
        is_stopping: impl Fn(&Name) -> bool,
    ) -> Option<EndedAttempt> {
        let state = &mut *self.0.lock();
        let task = state.attempting(run, seq, attempt)?;
        let attempting = task.attempting()?.clone();
        let overdue = task.overdue(steady);
        let result = overdue.map_or(result, |kind| Err(timeout(kind)));
        let then = match result {
            Err(_) if overdue.is_none() && is_stopping(task.queue()) => {
                let report = attempting.unstored.then(|| task.write(now));
                state.remove((run, seq));
                AfterAttempt::LeftToNextProcess(report)
            }
            Err(failure) if overdue != Some(TimeoutKind::ScheduleToClose) => {
                match task.next_after(&failure, (now, steady)) {
                    AfterFailure::Retry(at) => {
                        task.failure = Some(failure);
                        AfterAttempt::Retry { at, write: state.wait((run, seq), at)? }
                    }
                    AfterFailure::End(retry) => {
                        AfterAttempt::End { task: Box::new(state.remove((run, seq))?), result: Err(failure), retry }
                    }
                }
            }
            result => {
                let retry = if result.is_ok() { RetryState::Unspecified } else { RetryState::Timeout };
                let task = Box::new(state.remove((run, seq))?);
                let result = result.map_err(|failure| failure_after(failure, &task));
                AfterAttempt::End { task, result, retry }
            }
        };
        Some(EndedAttempt { alarms: attempting.alarms, then })
    }

    /// Ends an attempt that failed according to the holder of its token; another follows. Returns the attempt's alarms,
    /// its handle and the write for the store; none if another attempt is about to begin anyway.
    pub(crate) fn fail_external_attempt(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        failure: Failure,
        at: Timestamp,
    ) -> Option<(Vec<AlarmNo>, Option<AttemptHandle>, AttemptWrite)> {
        let state = &mut *self.0.lock();
        let task = state.attempting(run, seq, attempt)?;
        let attempting = task.attempting()?.clone();
        task.failure = Some(failure);
        Some((attempting.alarms, attempting.handle, state.wait((run, seq), at)?))
    }

    /// Notes that the code of an attempt has ended and leaves it to the holder of its token. Returns whether the
    /// attempt is still wanted.
    pub(crate) fn begin_to_leave(&self, (run, seq, attempt): (RunNo, Seq, u32)) -> bool {
        let mut state = self.0.lock();
        let Some(task) = state.attempting(run, seq, attempt) else { return false };
        if let Some(attempting) = task.attempting_mut() {
            (attempting.leaves, attempting.handle) = (true, None);
        }
        // Its code has ended, so it has not killed the process.
        task.crash_count = 0;
        true
    }

    /// Makes an attempt external and frees its place. Called when it is stored that the holder of its token completes
    /// it.
    pub(crate) fn leave_to_external(&self, (run, seq, attempt): (RunNo, Seq, u32)) {
        let state = &mut *self.0.lock();
        let Some(task) = state.attempting(run, seq, attempt).filter(|task| task.is_running()) else { return };
        let Some(mut attempting) = task.attempting().cloned() else { return };
        attempting.leaves = false;
        task.state = TaskState::External(attempting);
        let queue = task.queue().clone();
        state.free_place(&queue);
        state.clear((run, seq));
    }

    /// Makes the write that stores the current state of an attempt.
    pub(crate) fn write_of(&self, (run, seq, attempt): (RunNo, Seq, u32), ready: Timestamp) -> Option<AttemptWrite> {
        self.0.lock().attempting(run, seq, attempt).map(|task| task.write(ready))
    }

    /// Notes the progress that an attempt reports. The first report is stored at once, later ones at most once in each
    /// pause; of the reports in between the last one counts. `pauses` gives a queue's default and longest pause between
    /// two.
    pub(crate) fn report(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        details: Payload,
        (now, steady): (Timestamp, Steady),
        pauses: impl Fn(&Name) -> (Duration, Duration),
    ) -> Option<Report> {
        let state = &mut *self.0.lock();
        let task = state.attempting(run, seq, attempt)?;
        let has_progressed = task.details.as_ref() != Some(&details);
        let (default, longest) = pauses(task.queue());
        let pause = task.pause_between_reports(default, longest);
        task.details = Some(details);
        let attempting = task.attempting_mut()?;
        (attempting.last_heartbeat, attempting.heard) = (now, steady);
        let due = attempting.stored.map(|stored| stored.after(pause)).filter(|due| *due > steady);
        let report = match due {
            None => Report::Store(task.stored_now(now, steady)?),
            Some(_) if std::mem::replace(&mut attempting.unstored, true) => Report::Kept,
            Some(due) => Report::StoreLater(due.since(steady)),
        };
        if has_progressed {
            // The attempt makes progress, so it is not what kills the process.
            state.clear((run, seq));
        }
        Some(report)
    }

    /// Makes the write of the latest report, after the pause since the last report that was stored.
    pub(crate) fn report_due(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        (now, steady): (Timestamp, Steady),
    ) -> Option<AttemptWrite> {
        self.0.lock().attempting(run, seq, attempt)?.stored_now(now, steady)
    }

    /// Decides whether an attempt has timed out, or has more time because it reported meanwhile.
    pub(crate) fn attempt_timed_out(
        &self,
        (run, seq, attempt): (RunNo, Seq, u32),
        kind: TimeoutKind,
        steady: Steady,
    ) -> Option<AttemptTimeout> {
        let mut state = self.0.lock();
        let task = state.attempting(run, seq, attempt)?;
        let heartbeat = task.command.timeouts.heartbeat;
        let attempting = task.attempting()?;
        let deadline = heartbeat.map(|timeout| attempting.heard.after(timeout));
        Some(match (kind, deadline) {
            (TimeoutKind::Heartbeat, Some(deadline)) if deadline > steady => {
                AttemptTimeout::Extended(deadline.since(steady))
            }
            _ => AttemptTimeout::Over(attempting.handle.clone()),
        })
    }

    /// Removes an activity that has used up the time for all its attempts or for the wait before the first, unless it
    /// began in time or has time left.
    pub(crate) fn task_timed_out(&self, run: RunNo, seq: Seq, kind: TimeoutKind, steady: Steady) -> TaskTimeout {
        let state = &mut *self.0.lock();
        let Some(task) = state.tasks.get(&(run, seq)) else { return TaskTimeout::NotHere };
        let begins = match task.state {
            TaskState::Running(_) | TaskState::External(_) | TaskState::Waiting { .. } => true,
            // An earlier process left it, and nothing keeps it from beginning now.
            TaskState::Ready => task.attempt > 1 || state.has_place(task.queue()),
            TaskState::Unserved | TaskState::Quarantined => false,
        };
        let left = task.over.map(|over| over.since(steady)).filter(|left| !left.is_zero());
        match (kind, left) {
            (TimeoutKind::ScheduleToStart, _) if begins => return TaskTimeout::Began,
            (TimeoutKind::ScheduleToClose, Some(left)) => return TaskTimeout::Early(left),
            _ => {}
        }
        state.remove((run, seq)).map_or(TaskTimeout::NotHere, |task| TaskTimeout::Over(Box::new(task)))
    }

    /// Cancels an activity that the workflow no longer wants. `waits` says whether the workflow waits for its outcome.
    pub(crate) fn cancel(&self, run: RunNo, seq: Seq, waits: bool, reason: &str) -> CancelledTask {
        let state = &mut *self.0.lock();
        if waits && let Some(task) = state.tasks.get_mut(&(run, seq)).filter(|task| task.attempting().is_some()) {
            task.cancelled = Some(reason.to_owned());
            return CancelledTask::Asked(task.handle());
        }
        state.remove((run, seq)).map_or(CancelledTask::Gone, |task| CancelledTask::Removed(Box::new(task)))
    }

    /// Makes a waiting task ready. Returns it as it waited if that was because of its crash count.
    pub(crate) fn make_ready(&self, (run, seq, attempt): (RunNo, Seq, u32)) -> Option<Task> {
        let state = &mut *self.0.lock();
        let mut delayed = None;
        if let Some(task) = state.tasks.get_mut(&(run, seq))
            && task.attempt == attempt
            && matches!(task.state, TaskState::Waiting { .. })
        {
            if task.is_delayed() {
                state.delayed -= 1;
                delayed = Some(task.clone());
            }
            task.state = TaskState::Ready;
            let task = task.clone();
            state.enlist((run, seq), &task);
        }
        delayed
    }

    /// Marks a task that was taken to run as unserved, and frees its place.
    pub(crate) fn set_unserved(&self, run: RunNo, seq: Seq) {
        let state = &mut *self.0.lock();
        state.probation.take_if(|(key, _)| *key == (run, seq));
        if let Some(task) = state.tasks.get_mut(&(run, seq)) {
            task.state = TaskState::Unserved;
            if let Some(lane) = lane(&mut state.lanes, task.queue()) {
                lane.change(|lane| {
                    lane.running -= 1;
                    lane.unserved += 1;
                });
            }
        }
    }

    /// Ends an attempt's probation: other tasks no longer wait for it. Its crash count stays until it ends.
    pub(crate) fn end_probation(&self, (run, seq, attempt): (RunNo, Seq, u32)) {
        self.0.lock().probation.take_if(|probation| *probation == ((run, seq), attempt));
    }

    /// The tasks of a run that are quarantined or delayed because of their crash counts.
    pub(crate) fn tasks_to_release(&self, run: RunNo) -> Vec<TaskNo> {
        let state = self.0.lock();
        let tasks = state.of_run.get(&run).into_iter().flatten().filter_map(|seq| state.tasks.get(&(run, *seq)));
        tasks.filter(|task| task.needs_release()).map(|task| task.no).collect()
    }

    /// Makes the quarantined and delayed tasks of a run ready. Called when their release is durable.
    pub(crate) fn release(&self, run: RunNo) {
        let state = &mut *self.0.lock();
        let seqs: Vec<Seq> = state.of_run.get(&run).into_iter().flatten().copied().collect();
        for seq in seqs {
            if let Some(task) = state.tasks.get_mut(&(run, seq))
                && task.needs_release()
            {
                state.delayed -= usize::from(task.is_delayed());
                state.quarantined -= usize::from(matches!(task.state, TaskState::Quarantined));
                (task.state, task.crash_count) = (TaskState::Ready, 0);
                let task = task.clone();
                state.enlist((run, seq), &task);
            }
        }
    }

    /// A task of this run that does not run before an operator acts (serves its type, or releases it) or its delay is over.
    pub(crate) fn blocked(&self, run: RunNo) -> Option<Task> {
        let state = self.0.lock();
        let waits = |task: &Task| matches!(task.state, TaskState::Unserved | TaskState::Quarantined);
        let is_blocked = |task: &&Task| waits(task) || task.is_delayed();
        // Called with every turn of every run, and there is hardly ever such a task.
        let any = state.quarantined + state.delayed > 0 || state.lanes.iter().any(|lane| lane.unserved > 0);
        let seqs = state.of_run.get(&run).filter(|_| any)?;
        seqs.iter().filter_map(|seq| state.tasks.get(&(run, *seq))).find(is_blocked).cloned()
    }

    /// Whether no attempt runs here.
    pub(crate) fn is_idle(&self) -> bool {
        !self.0.lock().tasks.values().any(Task::is_running)
    }

    /// Removes every task of this queue that runs here.
    pub(crate) fn take_running(&self, queue: &Name) -> Vec<Task> {
        let state = &mut *self.0.lock();
        let running = |(key, task): (&Key, &Task)| (task.is_running() && task.queue() == queue).then_some(*key);
        let keys: BTreeSet<Key> = state.tasks.iter().filter_map(running).collect();
        keys.into_iter().filter_map(|key| state.remove(key)).collect()
    }

    /// The handles of all attempts that run here.
    pub(crate) fn handles(&self) -> Vec<AttemptHandle> {
        self.0.lock().tasks.values().filter_map(Task::handle).collect()
    }
}

/// A failure of a whole activity, caused by that of its last attempt.
pub(crate) fn failure_after(failure: Failure, task: &Task) -> Failure {
    match task.failure.clone() {
        Some(last) => failure.caused_by(last),
        None => failure,
    }
}

impl Task {
    /// Makes the write of the latest report, and notes that it is stored now.
    fn stored_now(&mut self, now: Timestamp, steady: Steady) -> Option<AttemptWrite> {
        let attempting = self.attempting_mut()?;
        (attempting.stored, attempting.unstored) = (Some(steady), false);
        Some(self.write(now))
    }
}
