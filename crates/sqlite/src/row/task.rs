//! The row of a task.

use rusqlite::{Connection, Row, params};

use dacapo_core::{Seq, Timestamp};
use dacapo_store::{AttemptWrite, NewTask, NodeNo, RunNo, StoreError, TaskNo, TaskRow};

use crate::columns::{moment, name, time};
use crate::store_error::store_error;
use crate::sum::{Part, Sum};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of a task, in the order in which [`read`] reads them. `holder` is the node: the numbered format keeps the name.
pub(crate) const COLUMNS: &str = "no, run, seq, queue, ready, priority, turn, position, attempt, crash_count, holder, failure, details, \
     external, sum, attempt_sum";

/// The columns that never change.
pub(crate) struct Fixed<'t> {
    pub(crate) no: i64,
    pub(crate) run: RunNo,
    pub(crate) seq: Seq,
    pub(crate) queue: &'t str,
    pub(crate) priority: i32,
    pub(crate) turn: u64,
    pub(crate) position: u32,
}

impl<'t> Fixed<'t> {
    pub(crate) fn of_new(no: i64, run: RunNo, turn: u64, task: &'t NewTask) -> Self {
        let NewTask { seq, queue, priority, position, .. } = task;
        Self { no, run, seq: *seq, queue, priority: *priority, turn, position: *position }
    }

    fn of_row(row: &'t TaskRow) -> Self {
        let TaskRow { no, run, seq, queue, priority, turn, position, .. } = row;
        Self { no: no.0, run: *run, seq: *seq, queue, priority: *priority, turn: *turn, position: *position }
    }

    pub(crate) fn sum(&self) -> i64 {
        Sum::of(Part::Task, self.no)
            .number(self.run.0)
            .number(self.seq.0 as i64)
            .text(self.queue)
            .number(self.priority.into())
            .number(self.turn as i64)
            .number(self.position.into())
            .finish()
    }
}

/// The columns that an attempt changes.
pub(crate) struct Attempt<'t> {
    pub(crate) no: TaskNo,
    pub(crate) attempt: u32,
    pub(crate) ready: Timestamp,
    pub(crate) node: Option<NodeNo>,
    pub(crate) crash_count: u32,
    pub(crate) external: Option<Timestamp>,
    pub(crate) failure: Option<&'t [u8]>,
    pub(crate) details: Option<&'t [u8]>,
}

impl<'t> Attempt<'t> {
    /// Returns the first attempt, which has not begun.
    pub(crate) fn first(no: i64, ready: Timestamp) -> Self {
        Self {
            no: TaskNo(no),
            attempt: 1,
            ready,
            node: None,
            crash_count: 0,
            external: None,
            failure: None,
            details: None,
        }
    }

    pub(crate) fn of_write(write: &'t AttemptWrite) -> Self {
        let AttemptWrite { task, attempt, ready, node, crash_count, external, failure, details } = write;
        let (failure, details) = (failure.as_deref(), details.as_deref());
        let (no, attempt, ready, node) = (*task, *attempt, *ready, *node);
        Self { no, attempt, ready, node, crash_count: *crash_count, external: *external, failure, details }
    }

    fn of_row(row: &'t TaskRow) -> Self {
        let TaskRow { no, attempt, ready, node, crash_count, external, failure, details, .. } = row;
        let (failure, details) = (failure.as_deref(), details.as_deref());
        let (no, attempt, ready, node) = (*no, *attempt, *ready, *node);
        Self { no, attempt, ready, node, crash_count: *crash_count, external: *external, failure, details }
    }

    pub(crate) fn sum(&self) -> i64 {
        Sum::of(Part::Attempt, self.no.0)
            .number(self.attempt.into())
            .number(moment(self.ready))
            .option_number(self.node.map(|node| node.0))
            .number(self.crash_count.into())
            .option_number(self.external.map(moment))
            .option_bytes(self.failure)
            .option_bytes(self.details)
            .finish()
    }
}

fn read_stored(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow {
        no: TaskNo(row.get(0)?),
        run: RunNo(row.get(1)?),
        seq: Seq(row.get::<_, i64>(2)? as u64),
        queue: name(row, 3)?,
        ready: time(row.get(4)?),
        priority: row.get(5)?,
        turn: row.get::<_, i64>(6)? as u64,
        position: row.get(7)?,
        attempt: row.get(8)?,
        crash_count: row.get(9)?,
        node: row.get::<_, Option<i64>>(10)?.map(NodeNo),
        failure: row.get(11)?,
        details: row.get(12)?,
        external: row.get::<_, Option<i64>>(13)?.map(time),
    })
}

fn sums(task: &TaskRow) -> (i64, i64) {
    (Fixed::of_row(task).sum(), Attempt::of_row(task).sum())
}

/// Reads a task and compares its checksums.
pub(crate) fn read(row: &Row<'_>) -> Result<TaskRow> {
    let read = || Ok((read_stored(row)?, (row.get(14)?, row.get(15)?)));
    let (task, stored) = read().map_err(store_error)?;
    if sums(&task) != stored {
        return Err(StoreError::Corrupt(format!("task {} of {} does not match its checksum", task.no.0, task.run)));
    }
    Ok(task)
}

/// Computes the checksums of a task anew. A caller that changes columns of a row reads the row before, and calls this
/// afterwards.
pub(crate) fn seal(connection: &Connection, no: TaskNo) -> Result<()> {
    let seal = || {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE no = ?");
        let (sum, attempt_sum) =
            connection.prepare_cached(&sql)?.query_row([no.0], |row| Ok(sums(&read_stored(row)?)))?;
        let sql = "UPDATE tasks SET sum = ?, attempt_sum = ? WHERE no = ?";
        connection.prepare_cached(sql)?.execute(params![sum, attempt_sum, no.0])
    };
    seal().map(drop).map_err(store_error)
}
