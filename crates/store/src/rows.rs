//! The rows of a store, one primitive at a time, within a transaction. What writes mean is decided above, once for all
//! stores; here is only what a table can do.

use dacapo_core::{Name, ParentClose, Seq, Timestamp};

use crate::{
    AttemptWrite, Epoch, MessageNo, NewMessage, NewRun, NewTask, NodeNo, RunNo, RunRow, Status, StoreError, Stuck,
    TaskNo, TimerKind,
};

type Result<T> = std::result::Result<T, StoreError>;

/// How many bytes one step of a sweep removes, or little more: whoever commits beside it waits for no more than that.
pub const SWEEP_BYTES: usize = 1 << 20;

/// A transaction on the tables of a store. An error here fails the whole group.
pub trait Rows {
    /// Adds a run that has this many turns.
    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo>;
    /// Adds a closed run that another store kept, under this number or the next that is free. It is nobody's child here.
    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo>;
    /// The last number of a run from this one on, and before that one, also of a run of which only remains are left.
    fn last_no(&mut self, from: RunNo, until: RunNo) -> Result<Option<RunNo>>;
    /// The run of this run id.
    fn run_of_id(&mut self, run_id: &str) -> Result<Option<RunNo>>;
    /// A run.
    fn run(&mut self, no: RunNo) -> Result<Option<RunRow>>;
    /// The open run of a workflow id.
    fn open_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>>;
    /// The run of a workflow id that was started last.
    fn last_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>>;
    /// The run that a request started.
    fn requested_run(&mut self, request: &str) -> Result<Option<RunNo>>;
    /// Open children, and what becomes of each when this run closes.
    fn open_children(&mut self, run: RunNo) -> Result<Vec<(RunNo, ParentClose)>>;
    /// Makes a child that of the run its parent went on as, which awaits nothing of it.
    fn hand_over(&mut self, child: RunNo, parent: RunNo) -> Result<()>;
    /// Counts a turn, if this is the next turn of an open run under this epoch. Says whether it was. A run that was stuck
    /// goes on with it, and this much is held against it from then on.
    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, crash_count: u32) -> Result<bool>;
    /// Sets owner and epoch, if the run is open and has the epoch it was seen with. Says whether it had.
    fn own(&mut self, run: RunNo, seen: Epoch, node: NodeNo, epoch: Epoch) -> Result<bool>;
    /// Makes a run the child of another: the operation and what was agreed stay the same.
    fn set_parent(&mut self, run: RunNo, parent: RunNo) -> Result<()>;
    /// Closes a run.
    fn close(&mut self, run: RunNo, status: Status, at: Timestamp, result: &[u8]) -> Result<()>;
    /// Says why a run does not go on, or that it does.
    fn set_stuck(&mut self, run: RunNo, stuck: Option<&Stuck>) -> Result<()>;
    /// Says how often its process died while the code of a run was played.
    fn set_run_crash_count(&mut self, run: RunNo, crash_count: u32) -> Result<()>;
    /// Removes a run, its attributes and its tasks, and notes that its turns and messages are to be removed.
    fn delete_run(&mut self, run: RunNo) -> Result<()>;
    /// Removes so many turns and messages, at most, of runs that were deleted, and of large ones no more than
    /// [`SWEEP_BYTES`], but one in any case. Says whether there may be more.
    fn sweep(&mut self, most: usize) -> Result<bool>;
    /// Replaces a run's memo.
    fn set_memo(&mut self, run: RunNo, memo: &[u8]) -> Result<()>;
    /// Replaces a run's snapshot.
    fn set_published(&mut self, run: RunNo, snapshot: &[u8]) -> Result<()>;
    /// Sets or removes a search attribute.
    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&[u8]>) -> Result<()>;

    /// Adds a turn's record.
    fn insert_turn(&mut self, run: RunNo, turn: u64, record: &[u8]) -> Result<()>;
    /// Adds the first turns of a run, this many, to another that has none.
    fn copy_turns(&mut self, from: RunNo, to: RunNo, count: u64) -> Result<()>;
    /// A turn's record.
    fn turn(&mut self, run: RunNo, turn: u64) -> Result<Option<Vec<u8>>>;

    /// Adds a task.
    fn insert_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> Result<TaskNo>;
    /// Removes a task. Says whether it was there.
    fn delete_task(&mut self, task: TaskNo) -> Result<bool>;
    /// Removes the task of an operation.
    fn delete_task_of(&mut self, run: RunNo, seq: Seq) -> Result<()>;
    /// Removes all tasks of a run.
    fn delete_tasks(&mut self, run: RunNo) -> Result<()>;
    /// Says how often its process died while a task was tried.
    fn set_task_crash_count(&mut self, task: TaskNo, crash_count: u32) -> Result<()>;
    /// Notes an attempt, unless the row says a later one ([`AttemptWrite::is_older_than`]). Says whether the task was there.
    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool>;

    /// Adds a timer.
    fn insert_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()>;
    /// Removes a timer.
    fn delete_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()>;

    /// Adds a message, taken or not. None if the run has a message of that key.
    fn insert_message(&mut self, run: RunNo, message: &NewMessage, taken: Option<u64>) -> Result<Option<MessageNo>>;
    /// The job of the message with this key.
    fn message_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>>;
    /// The message with this key.
    fn message_no(&mut self, run: RunNo, key: &str) -> Result<Option<MessageNo>>;
    /// Whether this message of a run waits to be taken.
    fn is_unseen(&mut self, run: RunNo, message: MessageNo) -> Result<bool>;
    /// Moves all messages that wait to another run.
    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()>;
    /// Marks a message as taken by a turn.
    fn take_message(&mut self, message: MessageNo, turn: u64) -> Result<()>;
    /// How many messages of a run no turn has taken.
    fn count_unseen(&mut self, run: RunNo) -> Result<usize>;
    /// Stores the outcome of a message.
    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()>;
}
