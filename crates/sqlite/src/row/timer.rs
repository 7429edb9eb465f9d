//! The row of a timer.

use rusqlite::Row;

use dacapo_store::{RunNo, StoreError, TimerKind, TimerRow};

use crate::columns::{moment, time};
use crate::store_error::{corrupt, store_error};
use crate::sum::{Part, Sum};

/// The columns of a timer, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "due, run, kind, seq, sum";

pub(crate) fn sum(timer: &TimerRow) -> Sum {
    let (kind, seq) = timer.kind.code();
    Sum::of(Part::Timer, timer.run.0).number(moment(timer.due)).number(kind).number(seq as i64)
}

/// Reads a timer and compares its checksum.
pub(crate) fn read(row: &Row<'_>) -> Result<TimerRow, StoreError> {
    let read = || Ok((row.get(0)?, RunNo(row.get(1)?), row.get(2)?, row.get::<_, i64>(3)?, row.get(4)?));
    let (due, run, kind, seq, stored) = read().map_err(store_error)?;
    // Not all kinds have an operation.
    let known = TimerKind::from_code(kind, seq as u64).filter(|known| known.code() == (kind, seq as u64));
    let kind = known.ok_or_else(|| corrupt(format!("a timer of {run} has kind {kind} and operation {seq}")))?;
    let timer = TimerRow { due: time(due), run, kind };
    sum(&timer).check(stored, || format!("the timer of {run} that is due at {due}"))?;
    Ok(timer)
}
