//! Reading a store: small traits by role. Reads see committed writes only.

use std::ops::ControlFlow;
use std::path::Path;

use dacapo_core::{AttributeValue, Name, Timestamp};

use crate::{
    Belongings, Filter, ListPlace, MessageRow, Nodes, Records, RunNo, RunRow, RunningNotes, StoreError, StoredRun,
    TaskNo, TaskRow, TimerRow, Writes,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A store: the interface to write, and all interfaces to read.
pub trait Store:
    Writes + ReadRuns + ReadTurns + ReadMessages + ReadTasks + ReadTimers + RunningNotes + Upkeep + Nodes
{
}

impl<S: Writes + ReadRuns + ReadTurns + ReadMessages + ReadTasks + ReadTimers + RunningNotes + Upkeep + Nodes> Store
    for S
{
}

/// Finds and describes runs.
pub trait ReadRuns {
    /// Returns a run by its number.
    fn run(&self, no: RunNo) -> Result<Option<RunRow>>;
    /// Returns a run that is about to be played from its record. A store over a network reads what that needs in the
    /// same trip.
    fn load(&self, no: RunNo) -> Result<Option<StoredRun>> {
        Ok(self.run(no)?.map(|row| StoredRun { row, along: None }))
    }
    /// Finds a run by its workflow id, and by its run id where one is given; otherwise the open run, or the last one.
    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>>;
    /// Lists runs that match, in the order of the filter, after this place: that of the last row starts the next page.
    fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunRow>>;
    /// Lists runs that match, oldest first, after this number.
    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>>;
    /// Lists the numbers of runs, newest first, before this one, without their rows, so that the caller can read each
    /// row by itself.
    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>>;
    /// Returns the request, attributes and messages of a run.
    fn belongings(&self, run: RunNo) -> Result<Belongings>;
    /// Returns the search attributes of a run.
    fn attributes(&self, run: RunNo) -> Result<Vec<(Name, AttributeValue)>>;
    /// Lists open runs that have a crash count, with that count, lowest first.
    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>>;
    /// Lists runs that closed before this moment, the earliest closed first.
    fn closed_before(&self, moment: Timestamp, limit: usize) -> Result<Vec<RunNo>>;
    /// Returns whether rows of deleted runs are left.
    fn has_remains(&self) -> Result<bool>;
    /// Counts the runs that match, and stops at this many.
    fn count(&self, filter: &Filter, most: u64) -> Result<u64>;
    /// Returns the workflows that runs are of, in their order.
    fn workflows(&self) -> Result<Vec<Name>>;
    /// Lists the numbers and workflows of open runs, in the order of their numbers, after this one. Runs that other nodes
    /// own may be left out.
    fn open_runs(&self, after: Option<RunNo>, limit: usize) -> Result<Vec<(RunNo, Name)>> {
        let rows = self.oldest(&Filter::open(), after, limit)?;
        Ok(rows.into_iter().map(|row| (row.no, row.workflow)).collect())
    }
}

/// Reads histories.
pub trait ReadTurns {
    /// Shows the records of a run from this turn on, in order, until `show` breaks.
    fn turns(&self, run: RunNo, from: u64, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()>;
    /// Reads a portion of the records of a run from this turn on. `room` is how many bytes they are expected to have.
    fn records(&self, run: RunNo, from: u64, room: usize) -> Result<Records> {
        let mut records = Records::with_room(room);
        self.turns(run, from, &mut |turn, record| {
            records.push(turn, record);
            if records.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(records)
    }
}

/// Reads messages.
pub trait ReadMessages {
    /// Returns all messages of a run that no turn has taken: never only those above a number, because numbers are not
    /// commit order.
    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>>;
    /// Counts the messages of a run that no turn has taken.
    fn count_unseen(&self, run: RunNo) -> Result<usize>;
    /// Returns the message with this key.
    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>>;
    /// Returns the runs of a chain that have the request of this key, in the order of their numbers. The chain is named
    /// by the run id of its first run.
    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>>;
    /// Lists runs that have messages that no turn has taken.
    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>>;
}

/// Reads tasks.
pub trait ReadTasks {
    /// Lists the tasks of these queues above this number, in the order of their numbers.
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>>;
    /// Returns a task by its number.
    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>>;
    /// Returns the tasks of a run.
    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>>;
}

/// Reads timers.
pub trait ReadTimers {
    /// Lists timers due by this moment, earliest first.
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>>;
    /// Returns when the first timer is due.
    fn next_due(&self) -> Result<Option<Timestamp>>;
}

/// Maintains a store as a whole.
pub trait Upkeep {
    /// Copies the store, as it is at one moment, into a new file, while other threads read and write. The file appears
    /// whole or not at all.
    fn back_up(&self, to: &Path) -> Result<()>;
    /// Returns whether this kind of store can be backed up.
    fn has_backup(&self) -> bool;
    /// Returns the problems of the store itself, as text.
    fn problems(&self) -> Result<Vec<String>>;
}
