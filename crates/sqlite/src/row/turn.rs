//! The row of a turn. The record has a checksum of its own; this one binds it to this turn of this run.

use rusqlite::Row;

use dacapo_store::{RunNo, StoreError};

use crate::sum::{Part, Sum};
use crate::trouble::{corrupt, trouble};

/// The columns of a turn, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "run, turn, record, sum";

pub(crate) fn sum(run: RunNo, turn: u64, record: &[u8]) -> Sum {
    Sum::of(Part::Turn, run.0).number(turn as i64).bytes(record)
}

/// Reads the number and the record of a turn and compares its checksum.
pub(crate) fn read<'r>(row: &'r Row<'_>) -> Result<(u64, &'r [u8]), StoreError> {
    let read = || Ok((RunNo(row.get(0)?), row.get::<_, i64>(1)? as u64, row.get_ref(2)?, row.get(3)?));
    let (run, turn, record, stored) = read().map_err(trouble)?;
    let record = record.as_blob().map_err(|error| corrupt(error.to_string()))?;
    sum(run, turn, record).check(stored, || format!("turn {turn} of {run}"))?;
    Ok((turn, record))
}
