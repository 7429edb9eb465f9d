//! The row of a search attribute.

use rusqlite::Row;

use dacapo_core::Name;
use dacapo_store::{RunNo, StoreError};

use crate::columns::name;
use crate::sum::{Part, Sum};
use crate::trouble::trouble;

/// The columns of an attribute, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "run, name, value, sum";

pub(crate) fn sum(run: RunNo, name: &str, value: &[u8]) -> Sum {
    Sum::of(Part::Attribute, run.0).text(name).bytes(value)
}

/// Reads the name and the value of an attribute and compares its checksum.
pub(crate) fn read(row: &Row<'_>) -> Result<(Name, Vec<u8>), StoreError> {
    let read = || Ok((RunNo(row.get(0)?), name(row, 1)?, row.get::<_, Vec<u8>>(2)?, row.get(3)?));
    let (run, name, value, stored) = read().map_err(trouble)?;
    sum(run, &name, &value).check(stored, || format!("attribute {:?} of {run}", name.as_str()))?;
    Ok((name, value))
}
