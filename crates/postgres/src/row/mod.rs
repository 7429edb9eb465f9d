//! Rows of the tables as values of the store interface, and back.

pub(crate) mod attribute;
pub(crate) mod message;
pub(crate) mod run;
pub(crate) mod task;
pub(crate) mod timer;

use dacapo_core::{Name, Timestamp};
use dacapo_store::{Shards, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::failure::unreadable;

/// Reads a column.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(unreadable)
}

pub(crate) fn name(row: &Row, column: usize) -> Result<Name, StoreError> {
    Ok(Name::from(get::<String>(row, column)?))
}

/// Converts a moment to the value in the database. A later moment than it can hold becomes the last one.
pub(crate) fn moment(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(crate) const fn time(moment: i64) -> Timestamp {
    Timestamp(moment as u64)
}

/// Returns shards as the low bits of the numbers of their runs.
pub(crate) fn low_bits(shards: &Shards) -> Vec<i64> {
    shards.iter().map(|shard| i64::from(shard.0)).collect()
}
