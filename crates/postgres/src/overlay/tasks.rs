//! The tasks as a group of writes sees them.

use dacapo_store::{AttemptWrite, NewTask, RunNo, StoreError, TaskNo, TaskRow};

use super::{Overlay, incomplete};

type Result<T> = std::result::Result<T, StoreError>;

impl Overlay<'_> {
    /// Returns a stored task that this group has not ended.
    pub(super) fn task(&mut self, no: TaskNo) -> Result<Option<&TaskRow>> {
        if self.changes.ended_tasks.contains(&no) {
            return Ok(None);
        }
        match self.facts.tasks.get(&no) {
            Some(task) => {
                let is_ended = self.changes.ended_runs.contains(&task.run)
                    || self.changes.ended_activities.contains(&(task.run, task.seq));
                Ok((!is_ended).then_some(task))
            }
            None if self.facts.asked.tasks.contains(&no) => Ok(None),
            None => {
                self.missing.tasks.insert(no);
                incomplete()
            }
        }
    }

    /// Adds a task. Returns its number.
    pub(super) fn add_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> TaskNo {
        let no = TaskNo(self.tasks.next().unwrap_or_else(|| {
            self.lacks_task_numbers = true;
            i64::MAX
        }));
        let NewTask { seq, queue, ready, priority, position, offered } = task.clone();
        // A task of a queue that this node serves needs not be claimed.
        let node = (!offered && self.node.serves(&queue)).then(|| self.node.no());
        let row = TaskRow {
            no,
            run,
            seq,
            queue,
            ready,
            priority,
            turn,
            position,
            attempt: 1,
            crash_count: 0,
            external: None,
            node,
            failure: None,
            details: None,
        };
        self.changes.new_tasks.insert(no, row);
        no
    }

    /// Writes an attempt of a task that this node works at. Returns whether it does.
    pub(super) fn change_task(&mut self, attempt: &AttemptWrite) -> Result<bool> {
        // The node that works at it writes it.
        let attempt = &AttemptWrite { node: Some(self.node.no()), ..attempt.clone() };
        if let Some(row) = self.changes.new_tasks.get_mut(&attempt.task) {
            if !attempt.is_older_than(row.attempt, row.external) {
                (row.attempt, row.ready, row.node) = (attempt.attempt, attempt.ready, attempt.node);
                (row.crash_count, row.external) = (attempt.crash_count, attempt.external);
                (row.failure, row.details) = (attempt.failure.clone(), attempt.details.clone());
            }
            return Ok(true);
        }
        let me = self.node.no();
        let row = self.task(attempt.task)?.filter(|row| row.node == Some(me));
        let Some((number, external)) = row.map(|row| (row.attempt, row.external)) else {
            return Ok(false);
        };
        let before = self.changes.attempts.get(&attempt.task);
        let (number, external) = before.map_or((number, external), |before| (before.attempt, before.external));
        if !attempt.is_older_than(number, external) {
            self.changes.crash_counts.remove(&attempt.task);
            self.changes.attempts.insert(attempt.task, attempt.clone());
        }
        Ok(true)
    }
}
