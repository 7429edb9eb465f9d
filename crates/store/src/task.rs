//! Tasks: activities that are to be tried.

use dacapo_core::{Name, Seq, Timestamp};

use crate::{NodeNo, RunNo, TaskNo};

/// A task that a turn makes. Its input stays where it was recorded: in the turn's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The operation.
    pub seq: Seq,
    /// The queue.
    pub queue: Name,
    /// Not before this.
    pub ready: Timestamp,
    /// Lower goes first.
    pub priority: i32,
    /// The command's place in its turn.
    pub position: u32,
}

/// A task as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Its number.
    pub no: TaskNo,
    /// The run it belongs to.
    pub run: RunNo,
    /// The operation.
    pub seq: Seq,
    /// The queue.
    pub queue: Name,
    /// Not before this.
    pub ready: Timestamp,
    /// Lower goes first.
    pub priority: i32,
    /// The turn whose command it is.
    pub turn: u64,
    /// The command's place in that turn.
    pub position: u32,
    /// The attempt that comes next, from 1.
    pub attempt: u32,
    /// How often an attempt was started and never heard of again.
    pub crash_count: u32,
    /// When the attempt began that somebody external completes; none if an attempt is to be made.
    pub external: Option<Timestamp>,
    /// The node that tries it now.
    pub holder: Option<NodeNo>,
    /// How the last attempt failed, encoded.
    pub failure: Option<Vec<u8>>,
    /// What the last attempt reported of its progress, encoded.
    pub details: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Seq, Timestamp};

    use super::NewTask;
    use crate::{RunNo, TurnOf, TurnWrite, Write};

    /// The tasks that a write hands in. A new write has to be entered here.
    fn tasks(write: &Write) -> Vec<&NewTask> {
        match write {
            Write::Turn(turn) => turn.tasks.iter().collect(),
            // It repeats tasks of turns that were committed before.
            Write::Reset(reset) => reset.tasks.iter().map(|(_, task)| task).collect(),
            Write::Start(_)
            | Write::Post { .. }
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

    /// S4-34: no write submits a task by itself.
    #[test]
    fn no_write_hands_in_a_task_but_a_turn_and_the_reset_that_repeats_one() {
        let task = NewTask { seq: Seq(0), queue: "main".into(), ready: Timestamp(0), priority: 0, position: 0 };
        let turn = TurnWrite::new(TurnOf::Run(RunNo(1)), 0, Timestamp(0), Vec::new());
        let turn = Write::Turn(Box::new(TurnWrite { tasks: vec![task.clone()], ..turn }));
        assert_eq!(tasks(&turn), [&task]);
        assert_eq!(tasks(&Write::Sweep { most: 1 }), Vec::<&NewTask>::new());
    }
}
