//! Quarantine: an activity that kills its process (an abort, a stack overflow, no memory left) must not do so for ever.
//!
//! What is under way is noted beside the store, without a commit ([`dacapo_store::Running`]). The next process finds what its
//! predecessor was doing when it died, and gives each of those tasks a strike. Most of them merely ran beside the one that
//! did it: of all that have strikes one is tried at a time (`Desk`), and an attempt that ends in any way clears its
//! task. What has [`MOST_STRIKES`] is not tried any more, and says so, until somebody releases it.

use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_store::{AttemptWrite, Doing, StoreError, TaskNo, TaskRow, Write};
use dacapo_worker::Grip;

use crate::attempts::attempt_write;
use crate::desk::Task;
use crate::inner::Inner;
use crate::loud;
use crate::{Engine, EngineError, RunId};

/// A task whose process died so often while it was tried is tried no more.
pub(crate) const MOST_STRIKES: u32 = 3;

pub(crate) fn words_on_quarantine(task: &Task) -> String {
    format!(
        "activity {:?} ({}) is quarantined: the process died {} times while it was tried, so it is not tried any more. See how \
         the process died, mend the activity, and release the run (`Handle::release`); or complete the activity from outside, \
         or terminate the run",
        task.command.activity, task.command.id, task.strikes
    )
}

impl Engine {
    /// Has the quarantined activities of a run tried again, as if they had never killed a process. It is durable when this
    /// answers.
    pub async fn release(&self, of: &RunId) -> Result<(), EngineError> {
        let row = self.open_row(of)?;
        let released = self.inner.desk().release(row.no);
        if released.is_empty() {
            let words = format!("nothing of the run of workflow id {:?} is quarantined", row.workflow_id);
            return Err(EngineError::BadInput(words));
        }
        for task in &released {
            let now = self.inner.host.now();
            self.inner.write(Write::Attempt(Box::new(attempt_write(task, now)))).await?;
        }
        self.inner.write(Write::Park { run: row.no, epoch: row.epoch, stuck: None }).await?;
        self.inner.mark_held(row.no);
        self.inner.dispatch();
        Ok(())
    }
}

impl Inner {
    /// The tasks that were tried when the process before this one died.
    pub(crate) fn left(&self) -> BTreeSet<TaskNo> {
        let tasks = self.store.left().into_iter().filter_map(|doing| match doing {
            Doing::Attempt(task) => Some(task),
            _ => None,
        });
        tasks.collect()
    }

    /// Has it noted that an attempt is under way, until nothing of its code runs.
    pub(crate) fn note_running(&self, task: TaskNo, grip: &Grip) {
        if let Some(slot) = self.store.began(Doing::Attempt(task)) {
            let store = self.store.clone();
            grip.on_end(move || store.ended(slot));
        }
    }

    /// Takes over a task that was tried when the process before this one died.
    pub(crate) fn adopt_struck(self: &Arc<Self>, row: &mut TaskRow) -> Result<(), StoreError> {
        row.strikes += 1;
        let write = AttemptWrite {
            task: row.no,
            attempt: row.attempt,
            ready: row.ready,
            holder: row.holder,
            strikes: row.strikes,
            outside: row.outside,
            failure: row.failure.clone(),
            details: row.details.clone(),
        };
        // Before it is tried again: nothing else is written while a store is taken over, so this is done at once.
        self.submit(Write::Attempt(Box::new(write)), |_, _| {});
        self.adopt(row)?;
        let quarantined = self.desk().get(row.run, row.seq).filter(|_| row.strikes >= MOST_STRIKES).cloned();
        if let Some(task) = quarantined {
            let reason = words_on_quarantine(&task);
            loud::about_run(&task.about.workflow_id, &task.about.run_id, &reason);
            self.mark_waiting(row.run, &task, reason);
        }
        Ok(())
    }
}
