//! Values as SQLite keeps them.

use rusqlite::Row;

use dacapo_core::{Name, Timestamp};

pub(crate) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Name> {
    Ok(Name::from(row.get::<_, String>(column)?))
}

/// Converts a moment to the value in SQLite. A later moment than SQLite can hold becomes the last one.
pub(crate) fn moment(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(crate) const fn time(moment: i64) -> Timestamp {
    Timestamp(moment as u64)
}
