//! The rows of a store: primitive operations within a transaction. `apply` decides what writes mean, once for all
//! stores; these are only operations on tables.

use dacapo_core::{AttributeValue, Name, ParentClose, Seq, Timestamp};

use crate::{
    AttemptWrite, Epoch, MessageNo, NewMessage, NewRun, NewTask, NodeNo, RunNo, RunRow, Status, StoreError, Stuck,
    TaskNo, TimerKind,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The bytes that one step of a sweep removes, or little more: a commit that waits for the step waits no longer than
/// that.
pub const SWEEP_BYTES: usize = 1 << 20;

/// A transaction on the tables of a store. An error here fails the whole group.
pub trait Rows {
    /// Returns whether several nodes share the store.
    fn is_shared(&self) -> bool {
        false
    }

    /// Adds a run that has this many turns.
    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo>;
    /// Adds a closed run that another store kept, under this number or the next free one. It has no parent here.
    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo>;
    /// Returns the highest number of a run in `from..until`, also of a deleted run whose turns or messages are left.
    fn last_no(&mut self, from: RunNo, until: RunNo) -> Result<Option<RunNo>>;
    /// Returns the run with this run id.
    fn run_of_id(&mut self, run_id: &str) -> Result<Option<RunNo>>;
    /// Returns a run's row.
    fn run(&mut self, no: RunNo) -> Result<Option<RunRow>>;
    /// Returns the open run of a workflow id.
    fn open_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>>;
    /// Returns the run of a workflow id that was started last.
    fn last_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>>;
    /// Returns the run that a request started.
    fn requested_run(&mut self, request: &str) -> Result<Option<RunNo>>;
    /// Returns the open children of a run, each with its policy for when the run closes.
    fn open_children(&mut self, run: RunNo) -> Result<Vec<(RunNo, ParentClose)>>;
    /// Moves a child to the run that its parent continued as, which awaits no result of it.
    fn hand_over(&mut self, child: RunNo, parent: RunNo) -> Result<()>;
    /// Counts a turn, if it is the next turn of an open run under this epoch. Returns whether it was. The run is then
    /// no longer stuck, and has this crash count.
    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, crash_count: u32) -> Result<bool>;
    /// Sets owner and epoch, if the run is open and has the epoch it was seen with. Returns whether it had.
    fn own(&mut self, run: RunNo, seen: Epoch, node: NodeNo, epoch: Epoch) -> Result<bool>;
    /// Makes a run the child of another: the operation and the parent-close policy stay the same.
    fn set_parent(&mut self, run: RunNo, parent: RunNo) -> Result<()>;
    /// Closes a run.
    fn close(&mut self, run: RunNo, status: Status, at: Timestamp, result: &[u8]) -> Result<()>;
    /// Sets why a run is stuck, or that it is not.
    fn set_stuck(&mut self, run: RunNo, stuck: Option<&Stuck>) -> Result<()>;
    /// Sets how often the process died while code of a run was played.
    fn set_run_crash_count(&mut self, run: RunNo, crash_count: u32) -> Result<()>;
    /// Removes a run, its attributes and its tasks, and marks its turns and messages for removal.
    fn delete_run(&mut self, run: RunNo) -> Result<()>;
    /// Removes at most `most` turns and messages of deleted runs, and stops after [`SWEEP_BYTES`], but removes at least
    /// one. Returns whether there may be more.
    fn sweep(&mut self, most: usize) -> Result<bool>;
    /// Replaces a run's memo.
    fn set_memo(&mut self, run: RunNo, memo: &[u8]) -> Result<()>;
    /// Replaces a run's snapshot.
    fn set_published(&mut self, run: RunNo, snapshot: &[u8]) -> Result<()>;
    /// Sets or removes a search attribute.
    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&AttributeValue>) -> Result<()>;

    /// Adds a turn's record.
    fn insert_turn(&mut self, run: RunNo, turn: u64, record: &[u8]) -> Result<()>;
    /// Copies the first `count` turns of a run to another that has none.
    fn copy_turns(&mut self, from: RunNo, to: RunNo, count: u64) -> Result<()>;
    /// Returns a turn's record.
    fn turn(&mut self, run: RunNo, turn: u64) -> Result<Option<Vec<u8>>>;

    /// Adds a task.
    fn insert_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> Result<TaskNo>;
    /// Removes a task. Returns whether it was there.
    fn delete_task(&mut self, task: TaskNo) -> Result<bool>;
    /// Removes a task, whether it is there or not: a store over a network need not look.
    fn remove_task(&mut self, task: TaskNo) -> Result<()> {
        self.delete_task(task).map(drop)
    }
    /// Removes the task of an operation.
    fn delete_task_of(&mut self, run: RunNo, seq: Seq) -> Result<()>;
    /// Removes all tasks of a run.
    fn delete_tasks(&mut self, run: RunNo) -> Result<()>;
    /// Sets how often the process died while an attempt of a task ran.
    fn set_task_crash_count(&mut self, task: TaskNo, crash_count: u32) -> Result<()>;
    /// Stores an attempt, unless the row has a later one ([`AttemptWrite::is_older_than`]). Returns whether the task
    /// was there, and, where several nodes share the store, this node's to work at.
    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool>;

    /// Adds a timer.
    fn insert_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()>;
    /// Removes a timer.
    fn delete_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()>;

    /// Adds a message, taken or not. Returns none if the run has a message with that key.
    fn insert_message(&mut self, run: RunNo, message: &NewMessage, taken: Option<u64>) -> Result<Option<MessageNo>>;
    /// Returns the job of the message with this key.
    fn message_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>>;
    /// Returns the number of the message with this key.
    fn message_no(&mut self, run: RunNo, key: &str) -> Result<Option<MessageNo>>;
    /// Returns whether this message of a run is unseen: no turn has taken it.
    fn is_unseen(&mut self, run: RunNo, message: MessageNo) -> Result<bool>;
    /// Moves all unseen messages to another run.
    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()>;
    /// Marks a message as taken by a turn.
    fn take_message(&mut self, message: MessageNo, turn: u64) -> Result<()>;
    /// Counts the messages of a run that no turn has taken.
    fn count_unseen(&mut self, run: RunNo) -> Result<usize>;
    /// Stores the outcome of a message.
    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()>;
}
