//! The row of a deleted run whose turns and messages are to be removed.

use rusqlite::Row;

use dacapo_store::{RunNo, StoreError};

use crate::store_error::store_error;
use crate::sum::{Part, Sum};

/// The columns of a deleted run, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "run, sum";

pub(crate) fn sum(run: RunNo) -> Sum {
    Sum::of(Part::Garbage, run.0)
}

/// Reads the number of a deleted run and compares its checksum: a wrong number would delete the turns of another run.
pub(crate) fn read(row: &Row<'_>) -> Result<RunNo, StoreError> {
    let read = || Ok((RunNo(row.get(0)?), row.get(1)?));
    let (run, stored) = read().map_err(store_error)?;
    sum(run).check(stored, || format!("the note that {run} was deleted"))?;
    Ok(run)
}
