//! Activities that wait for an operator: their type or queue is not served, their input is gone, or they are quarantined.
//! The engine marks their run as stuck, with the reason.

use std::sync::Arc;

use dacapo_core::{Name, Timestamp};
use dacapo_store::{Epoch, RunNo, StuckCause, Write};

use crate::activity::task::{Task, TaskState};
use crate::host::WorkKind;
use crate::report::stuck_reason::StuckReason;
use crate::report::{log, queue_log};
use crate::run::open_operations::{Open, OpenOperations};
use crate::shared::Shared;
use crate::writes::submit;

/// Logs that no worker here serves the type of an activity, and marks its run as stuck. The run's own code has not failed.
pub(crate) fn report_unserved(shared: &Arc<Shared>, run: RunNo, task: &Task) {
    log_unserved(shared, task);
    mark_stuck(shared, run, task.info.epoch, unserved(shared, task), None);
}

/// Logs that no worker here serves the type of an activity.
pub(crate) fn log_unserved(shared: &Shared, task: &Task) {
    shared.stuck_log.report(&task.info.name, "", &unserved(shared, task), shared.now());
}

/// Logs, once for each queue, that a run or one of its activities waits in a task queue that no worker here serves, and
/// marks the run as stuck.
pub(crate) fn report_unserved_queue(shared: &Arc<Shared>, run: RunNo, epoch: Epoch, queue: &Name) {
    shared.queue_log.report(queue, &shared.options.served_queues());
    mark_unserved_queue(shared, run, epoch, queue);
}

/// Marks a run as stuck because it, or one of its activities, waits in a task queue that no worker here serves.
fn mark_unserved_queue(shared: &Arc<Shared>, run: RunNo, epoch: Epoch, queue: &Name) {
    let reason = StuckReason::new(StuckCause::UnservedQueue, queue.as_str(), queue_log::words(queue));
    mark_stuck(shared, run, epoch, reason, None);
}

/// The task queue of an open activity that no worker here serves, if there is one.
pub(crate) fn unserved_queue(shared: &Shared, open: &OpenOperations) -> Option<Name> {
    open.operations.values().find_map(|operation| match operation {
        Open::Activity { command, .. } => command.queue.clone().filter(|queue| !shared.is_served(queue)),
        _ => None,
    })
}

/// Logs that the input of an activity cannot be read, and marks its run as stuck.
pub(crate) fn report_no_input(shared: &Arc<Shared>, run: RunNo, task: &Task) {
    let text = format!(
        "what activity {:?} ({}) is given cannot be read: the store is damaged. Restore it from a backup, or complete the \
         activity from outside",
        task.command.activity, task.command.id
    );
    let reason = StuckReason::new(StuckCause::StoreDamaged, subject(task), text);
    shared.stuck_log.report(&task.info.name, "", &reason, shared.now());
    mark_stuck(shared, run, task.info.epoch, reason, None);
}

/// Logs that an activity is quarantined or delayed for its crash count, once in each process, and marks its run as stuck if
/// `marks`.
pub(crate) fn report_crashes(shared: &Arc<Shared>, run: RunNo, task: &Task, until: Option<Timestamp>, marks: bool) {
    let reason = match until {
        Some(until) => delayed(task, until),
        None => quarantined(task),
    };
    log::warn_of_run(&task.info.name, &reason.text);
    if marks {
        mark_stuck(shared, run, task.info.epoch, reason, until);
    }
}

/// Marks a run as stuck if one of its activities waits: in this queue that is not served, for an operator, or for the end
/// of a delay. Called after a write that cleared the mark.
pub(crate) fn mark_waiting(shared: &Arc<Shared>, run: RunNo, epoch: Epoch, queue: Option<&Name>) {
    match queue {
        Some(queue) => mark_unserved_queue(shared, run, epoch, queue),
        None => mark_blocked(shared, run),
    }
}

/// Marks a run as stuck if one of its activities waits for an operator or is delayed. Called after a write that cleared
/// the mark.
pub(crate) fn mark_blocked(shared: &Arc<Shared>, run: RunNo) {
    if let Some(task) = shared.tasks.blocked(run) {
        let (reason, until) = match task.state {
            TaskState::Quarantined => (quarantined(&task), None),
            TaskState::Waiting { until } => (delayed(&task, until), Some(until)),
            _ => (unserved(shared, &task), None),
        };
        mark_stuck(shared, run, task.info.epoch, reason, until);
    }
}

/// Clears the mark of a run as stuck when the delay of its activity is over.
pub(crate) fn unmark_delayed(shared: &Arc<Shared>, run: RunNo, task: &Task) {
    let TaskState::Waiting { until } = task.state else { return };
    let (reason, epoch) = (delayed(task, until), task.info.epoch);
    shared.later(WorkKind::Write, Some(run), move |shared| {
        // The run may be stuck for another reason by now.
        let row = shared.store().run(run).ok().flatten();
        if row.and_then(|row| row.stuck).is_some_and(|stuck| reason.is_that_of(&stuck)) {
            submit(shared, Write::SetStuck { run, epoch, stuck: None }, move |shared, _| mark_blocked(shared, run));
        }
    });
}

fn mark_stuck(shared: &Arc<Shared>, run: RunNo, epoch: Epoch, reason: StuckReason, until: Option<Timestamp>) {
    let now = shared.now();
    let text = reason.text.clone();
    let write = Write::SetStuck { run, epoch, stuck: Some(reason.into_stuck(now, 1, until.unwrap_or(now))) };
    shared.later(WorkKind::Write, Some(run), move |shared| {
        submit(shared, write, move |shared, _| {
            shared.waiters.wake_result_or_stuck(run, &text);
            shared.tell_watchers(run);
        });
    });
}

fn unserved(shared: &Shared, task: &Task) -> StuckReason {
    let known: Vec<&str> = shared.options.registry.activities().map(Name::as_str).collect();
    let text = format!(
        "activity {:?} is not served here; served are: {}. Serve it in this program; the run goes on by itself then",
        task.command.activity,
        if known.is_empty() { "none".to_owned() } else { known.join(", ") },
    );
    StuckReason::new(StuckCause::UnservedActivity, subject(task), text)
}

fn quarantined(task: &Task) -> StuckReason {
    let text = format!(
        "activity {:?} ({}) is quarantined: the process died {} times while it ran, so it is not tried any more. See how the \
         process died, correct the activity, and release the run (`Handle::release`); or complete the activity from outside, or \
         terminate the run",
        task.command.activity, task.command.id, task.crash_count
    );
    StuckReason::new(StuckCause::Quarantined, subject(task), text)
}

fn delayed(task: &Task, until: Timestamp) -> StuckReason {
    let text = format!(
        "activity {:?} ({}) is delayed until {until}: the process died {} times while it ran. It is tried again by itself; \
         see how the process died",
        task.command.activity, task.command.id, task.crash_count
    );
    StuckReason::new(StuckCause::Delayed, subject(task), text)
}

fn subject(task: &Task) -> String {
    format!("activity {}", task.command.activity)
}
