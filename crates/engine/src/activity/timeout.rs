//! Timeouts of attempts and of whole activities.

use std::sync::Arc;

use dacapo_core::{RetryState, Seq, TimeoutKind};
use dacapo_store::{RunNo, StoreError, TimerRow};

use crate::activity::adopt::{Origins, read_task};
use crate::activity::end::{end_attempt, resolve};
use crate::activity::task::{Task, timeout};
use crate::activity::task_queue::{AttemptTimeout, TaskTimeout, failure_after};
use crate::host::WorkKind;
use crate::lifecycle::halt::halt;
use crate::lifecycle::zombies::give_up;
use crate::shared::Shared;
use crate::timer::end::end_timer;
use crate::timer::wheel::Due;

/// Ends an attempt that has taken too long, or was silent for too long.
pub(crate) fn attempt_timed_out(shared: &Arc<Shared>, (run, seq, attempt): (RunNo, Seq, u32), kind: TimeoutKind) {
    let steady = shared.host.steady_now();
    match shared.tasks.attempt_timed_out((run, seq, attempt), kind, steady) {
        Some(AttemptTimeout::Extended(pause)) => {
            let alarm = shared.arm_in(pause, Due::Attempt { run, seq, attempt, kind });
            shared.tasks.add_alarm((run, seq, attempt), alarm);
        }
        Some(AttemptTimeout::Over(Some(handle))) => {
            let failure = timeout(kind);
            let words = failure.message.clone();
            handle.finish(Err(failure));
            give_up(shared, &handle, &words);
        }
        // The attempt timed out before it began, or it is left to the holder of its token.
        Some(AttemptTimeout::Over(None)) => end_attempt(shared, (run, seq, attempt), Err(timeout(kind))),
        None => {}
    }
}

/// Handles a stored timeout of a whole activity that is due.
pub(crate) fn task_timed_out(shared: &Arc<Shared>, row: TimerRow, seq: Seq, kind: TimeoutKind) {
    match shared.tasks.task_timed_out(row.run, seq, kind, shared.host.steady_now()) {
        TaskTimeout::Began => {}
        TaskTimeout::Early(left) => {
            shared.arm_in(left, Due::Again(row));
        }
        TaskTimeout::Over(task) => end_late(shared, row.run, &task, kind),
        TaskTimeout::NotHere => shared.later(WorkKind::Read, Some(row.run), move |shared| {
            match task_elsewhere_timed_out(shared, row.run, seq, kind) {
                Ok(true) => {}
                // The activity's outcome is on its way to the run, which ends the timer; or the run is closed, and this
                // call ends it.
                Ok(false) => end_timer(shared, row),
                Err(error) => halt(shared, error.into()),
            }
        }),
    }
}

/// Handles the timeout of an activity that this process does not have: no worker has taken it in time. Returns
/// whether there is such an activity.
fn task_elsewhere_timed_out(shared: &Arc<Shared>, run: RunNo, seq: Seq, kind: TimeoutKind) -> Result<bool, StoreError> {
    let rows = shared.store().tasks_of(run)?;
    let held = |row: &dacapo_store::TaskRow| {
        shared.nodes().is_some_and(|nodes| row.node.is_some_and(|node| node != nodes.node()))
    };
    // An attempt that another node makes has begun.
    let is_elsewhere = |row: &&dacapo_store::TaskRow| {
        // One in a queue that is served here may have been offered to all nodes.
        let is_waiting = match shared.nodes() {
            Some(_) => row.node.is_none() && row.external.is_none(),
            None => !shared.workers.serve(&row.queue),
        };
        let has_begun = held(row) || row.attempt > 1;
        row.seq == seq && (is_waiting || held(row)) && (kind == TimeoutKind::ScheduleToClose || !has_begun)
    };
    let Some(row) = rows.iter().find(is_elsewhere) else { return Ok(false) };
    let Some(task) = read_task(shared, row, &mut Origins::default())? else { return Ok(false) };
    end_late(shared, run, &task, kind);
    Ok(true)
}

fn end_late(shared: &Arc<Shared>, run: RunNo, task: &Task, kind: TimeoutKind) {
    let failure = timeout(kind);
    if let Some(handle) = task.handle() {
        give_up(shared, &handle, &failure.message);
    }
    resolve(shared, run, task, Err(failure_after(failure, task)), RetryState::Timeout);
}
