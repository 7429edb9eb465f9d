//! The row of a task.

use dacapo_core::Seq;
use dacapo_store::{NodeNo, RunNo, StoreError, TaskNo, TaskRow};
use tokio_postgres::Row;

use super::{get, name, time};

/// The columns of a task, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str =
    "no, run, seq, queue, ready, priority, turn, position, attempt, crash_count, node, external, failure, details";

/// Returns the columns for a statement that names other tables too.
pub(crate) fn columns() -> String {
    COLUMNS.split(", ").map(|column| format!("tasks.{column}")).collect::<Vec<_>>().join(", ")
}

/// Reads a task.
pub(crate) fn read(row: &Row) -> Result<TaskRow, StoreError> {
    Ok(TaskRow {
        no: TaskNo(get(row, 0)?),
        run: RunNo(get(row, 1)?),
        seq: Seq(get::<i64>(row, 2)? as u64),
        queue: name(row, 3)?,
        ready: time(get(row, 4)?),
        priority: get(row, 5)?,
        turn: get::<i64>(row, 6)? as u64,
        position: get::<i64>(row, 7)? as u32,
        attempt: get::<i64>(row, 8)? as u32,
        crash_count: get::<i64>(row, 9)? as u32,
        node: get::<Option<i64>>(row, 10)?.map(NodeNo),
        external: get::<Option<i64>>(row, 11)?.map(time),
        failure: get(row, 12)?,
        details: get(row, 13)?,
    })
}
