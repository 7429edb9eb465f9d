//! The row of a run.

use dacapo_core::{ParentClose, Seq};
use dacapo_store::{Epoch, NodeNo, Parent, RunNo, RunRow, Status, StoreError, Stuck, StuckCause};
use tokio_postgres::Row;

use super::{get, name, time};
use crate::failure::corrupt;

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of a run, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "no, run_id, workflow_id, workflow, queue, status, started, closed, turns, owner, epoch, pins, \
     parent, parent_seq, parent_close, first_run_id, crash_count, stuck_cause, stuck_subject, stuck_reason, stuck_since, \
     stuck_attempts, stuck_retry, memo, published, result";

/// The number of columns: a statement may add others behind them.
pub(crate) const COUNT: usize = 26;

/// Reads a run.
pub(crate) fn read(row: &Row) -> Result<RunRow> {
    let no = RunNo(get(row, 0)?);
    let status = i64::from(get::<i16>(row, 5)?);
    let status = Status::from_code(status).ok_or_else(|| corrupt(format!("{no} has status {status}")))?;
    Ok(RunRow {
        no,
        run_id: name(row, 1)?,
        workflow_id: name(row, 2)?,
        workflow: name(row, 3)?,
        queue: name(row, 4)?,
        status,
        started: time(get(row, 6)?),
        closed: get::<Option<i64>>(row, 7)?.map(time),
        turns: get::<i64>(row, 8)? as u64,
        owner: get::<Option<i64>>(row, 9)?.map(NodeNo),
        epoch: Epoch(get(row, 10)?),
        pins: get(row, 11)?,
        parent: read_parent(row)?,
        first_run_id: name(row, 15)?,
        crash_count: get::<i64>(row, 16)? as u32,
        stuck: read_stuck(row)?,
        memo: get(row, 23)?,
        published: get(row, 24)?,
        result: get(row, 25)?,
    })
}

fn read_parent(row: &Row) -> Result<Option<Parent>> {
    let columns: (Option<i64>, Option<i64>, Option<i16>) = (get(row, 12)?, get(row, 13)?, get(row, 14)?);
    let (Some(run), Some(seq), Some(close)) = columns else { return Ok(None) };
    Ok(Some(Parent { run: RunNo(run), seq: Seq(seq as u64), close: parent_close(close)? }))
}

fn read_stuck(row: &Row) -> Result<Option<Stuck>> {
    let Some(code) = get::<Option<i16>>(row, 17)? else { return Ok(None) };
    let unknown = || corrupt(format!("a run is stuck for cause {code}, which this build does not know"));
    Ok(Some(Stuck {
        cause: StuckCause::from_code(code.into()).ok_or_else(unknown)?,
        subject: get(row, 18)?,
        reason: get(row, 19)?,
        since: time(get(row, 20)?),
        attempts: get::<i64>(row, 21)? as u32,
        retry: time(get(row, 22)?),
    }))
}

pub(crate) fn parent_close(code: i16) -> Result<ParentClose> {
    [ParentClose::Terminate, ParentClose::Abandon, ParentClose::RequestCancel]
        .into_iter()
        .find(|close| *close as i16 == code)
        .ok_or_else(|| corrupt(format!("a run has parent-close policy {code}")))
}
