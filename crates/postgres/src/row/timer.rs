//! The row of a timer.

use dacapo_store::{RunNo, StoreError, TimerKind, TimerRow};
use tokio_postgres::Row;

use super::{get, time};
use crate::failure::corrupt;

/// The columns of a timer, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "due, run, kind, seq";

/// Reads a timer.
pub(crate) fn read(row: &Row) -> Result<TimerRow, StoreError> {
    let (due, run, kind, seq) = (get(row, 0)?, RunNo(get(row, 1)?), get::<i16>(row, 2)?, get::<i64>(row, 3)?);
    let known = TimerKind::from_code(kind.into(), seq as u64).filter(|known| known.code() == (kind.into(), seq as u64));
    let kind = known.ok_or_else(|| corrupt(format!("a timer of {run} has kind {kind} and operation {seq}")))?;
    Ok(TimerRow { due: time(due), run, kind })
}
