//! Reading a store: small traits by role. Reads see committed writes only.

use std::ops::ControlFlow;
use std::path::Path;

use dacapo_core::{Name, Timestamp};

use crate::{Belongings, MessageRow, RunNo, RunRow, Running, Status, StoreError, TaskNo, TaskRow, TimerRow, Writes};

type Result<T> = std::result::Result<T, StoreError>;

/// A store: where writes go, and all that can be read.
pub trait Store: Writes + Runs + Turns + Messages + Tasks + Timers + Running + Upkeep {}

impl<S: Writes + Runs + Turns + Messages + Tasks + Timers + Running + Upkeep> Store for S {}

/// Which runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    /// Only runs that stand so.
    pub status: Option<Status>,
    /// Only runs of this type.
    pub workflow: Option<Name>,
    /// Only runs of this workflow id.
    pub workflow_id: Option<Name>,
    /// Only runs that are open and cannot go on.
    pub stuck: bool,
    /// Only runs started at or after this.
    pub started_from: Option<Timestamp>,
    /// Only runs started before this.
    pub started_before: Option<Timestamp>,
}

/// Finds and describes runs.
pub trait Runs {
    /// A run by its number.
    fn run(&self, no: RunNo) -> Result<Option<RunRow>>;
    /// A run by its workflow id, and by its run id where one is given; otherwise the open one, or the last.
    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>>;
    /// Runs that match, newest first, before this number: the number of the last row is the next page's.
    fn list(&self, filter: &RunFilter, before: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>>;
    /// Runs that match, oldest first, after this number.
    fn oldest(&self, filter: &RunFilter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>>;
    /// The numbers of runs, newest first, before this one, whatever else their rows hold: for a look at each by itself.
    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>>;
    /// What a run has beside its row and its turns.
    fn belongings(&self, run: RunNo) -> Result<Belongings>;
    /// Open runs that have a crash count, and that count, the lowest first.
    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>>;
    /// Runs that closed before this moment, those that closed first first.
    fn closed_before(&self, moment: Timestamp, limit: usize) -> Result<Vec<RunNo>>;
    /// Whether anything is left of runs that were deleted.
    fn has_remains(&self) -> Result<bool>;
    /// How many runs match.
    fn count(&self, filter: &RunFilter) -> Result<u64>;
}

/// Reads histories.
pub trait Turns {
    /// Shows the records of a run from this turn on, in order, until told to stop.
    fn turns(&self, run: RunNo, from: u64, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()>;
}

/// Reads messages.
pub trait Messages {
    /// All messages of a run that no turn has taken: all of them, never "above a number", because numbers are not commit order.
    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>>;
    /// The message with this key.
    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>>;
    /// The runs of a chain, by the run id of its first, that have the request of this key, in the order of their numbers.
    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>>;
    /// Runs that have messages that no turn has taken.
    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>>;
}

/// Reads tasks.
pub trait Tasks {
    /// The tasks of these queues, by their numbers, above this one.
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>>;
    /// A task by its number.
    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>>;
    /// The tasks of a run.
    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>>;
}

/// Reads timers.
pub trait Timers {
    /// Timers due by then, earliest first.
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>>;
    /// When the first timer is due.
    fn next_due(&self) -> Result<Option<Timestamp>>;
}

/// Looks after a store as a whole.
pub trait Upkeep {
    /// Copies everything, as it stands at one moment, into a file that is not there yet, while others read and write. The
    /// file is there whole or not at all.
    fn back_up(&self, to: &Path) -> Result<()>;
    /// What is wrong with the store itself, in words.
    fn problems(&self) -> Result<Vec<String>>;
}

impl RunFilter {
    /// Whether this run is one of them.
    pub fn matches(&self, row: &RunRow) -> bool {
        self.status.is_none_or(|status| row.status == status)
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.workflow_id.as_ref().is_none_or(|workflow_id| row.workflow_id == *workflow_id)
            && (!self.stuck || row.stuck.is_some())
            && self.started_from.is_none_or(|from| row.started >= from)
            && self.started_before.is_none_or(|before| row.started < before)
    }
}
