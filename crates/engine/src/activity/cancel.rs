//! Cancelling activities.

use std::sync::Arc;

use dacapo_core::{Failure, FailureKind, RetryState, Seq};
use dacapo_store::{RunNo, StoreError, TaskNo};

use crate::activity::cancel_elsewhere;
use crate::activity::end::resolve;
use crate::activity::task::UNWANTED;
use crate::activity::task_queue::CancelledTask;
use crate::lifecycle::zombies::give_up;
use crate::shared::Shared;

/// Cancels an activity that the workflow no longer wants. `waits` says whether the workflow waits for its outcome.
pub(crate) fn cancel_task(shared: &Arc<Shared>, run: RunNo, seq: Seq, waits: bool) {
    match shared.tasks.cancel(run, seq, waits, UNWANTED) {
        CancelledTask::Asked(handle) => {
            if let Some(handle) = handle {
                handle.cancel(UNWANTED);
            }
        }
        CancelledTask::Removed(task) if waits => {
            let failure = Failure::new(FailureKind::Cancelled, UNWANTED);
            resolve(shared, run, &task, Err(failure), RetryState::CancelRequested);
        }
        CancelledTask::Removed(task) => {
            if let Some(handle) = task.handle() {
                give_up(shared, &handle, UNWANTED);
            }
        }
        CancelledTask::Gone => cancel_elsewhere::cancel_task(shared, run, seq, waits),
    }
}

/// Removes the tasks of a run for which `is_over` holds, and stops their attempts.
pub(crate) fn give_up_tasks(shared: &Arc<Shared>, run: RunNo, is_over: impl Fn(TaskNo) -> bool) {
    for task in shared.tasks.remove_of_run(run, is_over) {
        if let Some(handle) = task.handle() {
            give_up(shared, &handle, "the run is closed");
        }
    }
}

/// Removes those of the `added` tasks that another thread ended in the store before they were in memory. Called on a thread
/// that may block, after the tasks were added: a thread that ends one later finds it in memory.
pub(crate) fn give_up_ended_tasks(shared: &Arc<Shared>, run: RunNo, added: &[TaskNo]) -> Result<(), StoreError> {
    let stored = shared.store().tasks_of(run)?;
    give_up_tasks(shared, run, |task| added.contains(&task) && stored.iter().all(|row| row.no != task));
    Ok(())
}
