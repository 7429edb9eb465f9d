//! Tasks: activities that have no result yet.

use dacapo_core::{Name, Seq, Timestamp};

use crate::{NodeNo, RunNo, TaskNo};

/// A task that a turn makes. The task's input stays in the turn's command, where it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The activity's operation.
    pub seq: Seq,
    /// The queue that the task is served on.
    pub queue: Name,
    /// When the next attempt may start at the earliest.
    pub ready: Timestamp,
    /// The priority: lower goes first.
    pub priority: i32,
    /// The command's position in its turn.
    pub position: u32,
    /// Whether the task is offered to all nodes that serve its queue. Otherwise the node that makes it works at it, if it
    /// serves the queue.
    pub offered: bool,
}

/// A task as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// The task's number.
    pub no: TaskNo,
    /// The run that the task belongs to.
    pub run: RunNo,
    /// The activity's operation.
    pub seq: Seq,
    /// The queue that the task is served on.
    pub queue: Name,
    /// When the next attempt may start at the earliest.
    pub ready: Timestamp,
    /// The priority: lower goes first.
    pub priority: i32,
    /// The turn whose command made the task.
    pub turn: u64,
    /// The command's position in that turn.
    pub position: u32,
    /// The next attempt's number, from 1.
    pub attempt: u32,
    /// The crash count: how often an attempt was started whose process then died.
    pub crash_count: u32,
    /// When the attempt began that is to be completed externally. None if the worker has to make an attempt.
    pub external: Option<Timestamp>,
    /// The node that runs an attempt now.
    pub node: Option<NodeNo>,
    /// How the last attempt failed, encoded.
    pub failure: Option<Vec<u8>>,
    /// The progress that the last attempt reported, encoded.
    pub details: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Seq, Timestamp};

    use super::NewTask;
    use crate::{RunNo, TurnOf, TurnWrite, Write};

    /// Returns the tasks that a write adds. A new kind of write has to be entered here.
    fn tasks(write: &Write) -> Vec<&NewTask> {
        match write {
            Write::Turn(turn) => turn.tasks.iter().collect(),
            // A reset repeats tasks of turns that were committed before.
            Write::Reset(reset) => reset.tasks.iter().map(|(_, task)| task).collect(),
            Write::Start(_)
            | Write::Send { .. }
            | Write::Settle { .. }
            | Write::Forget { .. }
            | Write::Attempt(_)
            | Write::SetStuck { .. }
            | Write::CrashCounts(_)
            | Write::Close { .. }
            | Write::Delete { .. }
            | Write::Expire { .. }
            | Write::Import(_)
            | Write::Sweep { .. }
            | Write::Own { .. } => Vec::new(),
        }
    }

    /// S4-34: no write but a turn's, and the reset that repeats one, adds a task.
    #[test]
    fn no_write_hands_in_a_task_but_a_turn_and_the_reset_that_repeats_one() {
        let task = NewTask {
            seq: Seq(0),
            queue: "main".into(),
            ready: Timestamp(0),
            priority: 0,
            position: 0,
            offered: false,
        };
        let turn = TurnWrite::new(TurnOf::Run(RunNo(1)), 0, Timestamp(0), Vec::new());
        let turn = Write::Turn(Box::new(TurnWrite { tasks: vec![task.clone()], ..turn }));
        assert_eq!(tasks(&turn), [&task]);
        assert_eq!(tasks(&Write::Sweep { most: 1 }), Vec::<&NewTask>::new());
    }
}
