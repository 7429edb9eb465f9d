//! The row of a run.

use rusqlite::{Connection, Params, Row, params};

use dacapo_core::{Name, ParentClose, Seq};
use dacapo_store::{Epoch, NodeNo, Parent, RunNo, RunRow, Status, StoreError, Stuck, StuckCause};

use crate::columns::{moment, name, time};
use crate::row::run_sums::{self, Identity};
use crate::store_error::{corrupt, store_error};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of a run, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "no, run_id, workflow_id, workflow, queue, status, started, closed, turns, owner, epoch, pins, \
     parent, parent_seq, parent_close, first_run_id, stuck_reason, stuck_since, stuck_attempts, stuck_retry, memo, \
     published, result, crash_count, request, identity_sum, progress_sum, stuck_sum, memo_sum, published_sum, result_sum, \
     stuck_cause, stuck_subject";

/// Finds the run that meets a condition.
pub(crate) fn find(connection: &Connection, condition: &str, params: impl Params) -> Result<Option<RunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query(params).map_err(store_error)?;
    rows.next().map_err(store_error)?.map(read).transpose()
}

/// Reads a run and compares its checksums.
pub(crate) fn read(row: &Row<'_>) -> Result<RunRow> {
    Ok(Stored::checked(row)?.row)
}

/// Returns the request that started a run, if one did. None if there is no such run.
pub(crate) fn request(connection: &Connection, no: RunNo) -> Result<Option<Option<Name>>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE no = ?");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([no.0]).map_err(store_error)?;
    let row = rows.next().map_err(store_error)?;
    row.map(|row| Ok(Stored::checked(row)?.request.map(Name::from))).transpose()
}

/// Computes the checksums of a run anew. A caller that changes columns of a row reads the row before, and calls this
/// afterwards.
pub(crate) fn seal(connection: &Connection, no: RunNo) -> Result<()> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE no = ?");
    let sums = {
        let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
        let mut rows = statement.query([no.0]).map_err(store_error)?;
        let Some(row) = rows.next().map_err(store_error)? else { return Ok(()) };
        Stored::read(row)?.sums()
    };
    let sql = "UPDATE runs SET identity_sum = ?, progress_sum = ?, stuck_sum = ?, memo_sum = ?, published_sum = ?, \
         result_sum = ? WHERE no = ?";
    let values = params![sums.identity, sums.progress, sums.stuck, sums.memo, sums.published, sums.result, no.0];
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.execute(values).map(drop).map_err(store_error)
}

/// The checksums of a run.
struct Sums {
    identity: i64,
    progress: i64,
    stuck: Option<i64>,
    memo: i64,
    published: Option<i64>,
    result: Option<i64>,
}

impl Sums {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            identity: row.get(25)?,
            progress: row.get(26)?,
            stuck: row.get(27)?,
            memo: row.get(28)?,
            published: row.get(29)?,
            result: row.get(30)?,
        })
    }
}

/// A run as it is stored, not yet compared with its checksums.
struct Stored {
    row: RunRow,
    /// The stored owner. That of a closed run is kept too, though [`RunRow`] has none.
    owner: Option<NodeNo>,
    request: Option<String>,
}

impl Stored {
    /// Reads a run and compares its checksums.
    fn checked(row: &Row<'_>) -> Result<Self> {
        let stored = Self::read(row)?;
        stored.check(&Sums::read(row).map_err(store_error)?)?;
        Ok(stored)
    }

    fn read(row: &Row<'_>) -> Result<Self> {
        let (parent, stuck, status) = (read_parent(row)?, read_stuck(row)?, row.get(5).map_err(store_error)?);
        let no = RunNo(row.get(0).map_err(store_error)?);
        let status = Status::from_code(status).ok_or_else(|| corrupt(format!("{no} has status {status}")))?;
        let read = || {
            let owner = row.get::<_, Option<i64>>(9)?.map(NodeNo);
            let run = RunRow {
                no,
                run_id: name(row, 1)?,
                workflow_id: name(row, 2)?,
                workflow: name(row, 3)?,
                queue: name(row, 4)?,
                status,
                started: time(row.get(6)?),
                closed: row.get::<_, Option<i64>>(7)?.map(time),
                turns: row.get::<_, i64>(8)? as u64,
                owner: owner.filter(|_| status.is_open()),
                epoch: Epoch(row.get(10)?),
                pins: row.get(11)?,
                parent,
                first_run_id: name(row, 15)?,
                stuck,
                crash_count: row.get(23)?,
                memo: row.get(20)?,
                published: row.get(21)?,
                result: row.get(22)?,
            };
            Ok(Self { row: run, owner, request: row.get(24)? })
        };
        read().map_err(store_error)
    }

    fn sums(&self) -> Sums {
        let Self { row, owner, request } = self;
        let no = row.no.0;
        let result = || run_sums::result(no, row.status, row.closed.map(moment), row.result.as_deref());
        Sums {
            identity: Identity::of_row(row, *owner, request.as_deref()).sum(no).finish(),
            progress: run_sums::progress(no, row.turns, row.epoch, row.crash_count).finish(),
            stuck: row.stuck.as_ref().map(|stuck| run_sums::stuck(no, stuck).finish()),
            memo: run_sums::memo(no, &row.memo).finish(),
            published: row.published.as_deref().map(|snapshot| run_sums::published(no, snapshot).finish()),
            result: (!row.status.is_open()).then(|| result().finish()),
        }
    }

    fn check(&self, stored: &Sums) -> Result<()> {
        let (row, sums) = (&self.row, self.sums());
        let is_open = row.status.is_open();
        for (is_right, what) in [
            (sums.identity == stored.identity, "its ids, types and pins do"),
            (sums.progress == stored.progress, "its number of turns, epoch and crash count do"),
            (sums.stuck == stored.stuck, "why it is stuck does"),
            (sums.memo == stored.memo, "its memo does"),
            (sums.published == stored.published, "what it published does"),
            (sums.result == stored.result, "its status, its end and its result do"),
            (!is_open || (row.closed, &row.result) == (None, &None), "its status, its end and its result do"),
        ] {
            if !is_right {
                let (workflow_id, run_id) = (row.workflow_id.as_str(), &row.run_id);
                return Err(corrupt(format!("run {workflow_id:?} ({run_id}): {what} not match the checksum")));
            }
        }
        Ok(())
    }
}

fn read_parent(row: &Row<'_>) -> Result<Option<Parent>> {
    let columns: [Option<i64>; 3] =
        [row.get(12).map_err(store_error)?, row.get(13).map_err(store_error)?, row.get(14).map_err(store_error)?];
    let [Some(run), Some(seq), Some(close)] = columns else { return Ok(None) };
    Ok(Some(Parent { run: RunNo(run), seq: Seq(seq as u64), close: parent_close(close)? }))
}

fn read_stuck(row: &Row<'_>) -> Result<Option<Stuck>> {
    let read = || Ok((row.get(31)?, row.get(32)?, row.get(16)?, row.get(17)?, row.get(18)?, row.get(19)?));
    Ok(match read().map_err(store_error)? {
        (Some(code), Some(subject), Some(reason), Some(since), Some(attempts), Some(retry)) => {
            let unknown = || corrupt(format!("a run is stuck for cause {code}, which this build does not know"));
            let cause = StuckCause::from_code(code).ok_or_else(unknown)?;
            Some(Stuck { cause, subject, reason, since: time(since), attempts, retry: time(retry) })
        }
        _ => None,
    })
}

pub(crate) fn parent_close(code: i64) -> Result<ParentClose> {
    [ParentClose::Terminate, ParentClose::Abandon, ParentClose::RequestCancel]
        .into_iter()
        .find(|close| *close as i64 == code)
        .ok_or_else(|| corrupt(format!("a run has parent-close policy {code}")))
}
