//! Converts SQLite's errors to a store's.

use rusqlite::{Error, ErrorCode};

use dacapo_store::StoreError;

/// Converts an error by what the caller can do about it.
pub(crate) fn store_error(error: Error) -> StoreError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(text),
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(text),
        Some(ErrorCode::NotADatabase) => {
            StoreError::Foreign(format!("it is no SQLite database ({text}): give Dacapo a file of its own"))
        }
        _ if is_wrong_type(&error) => StoreError::Corrupt(text),
        _ => StoreError::Unavailable(text),
    }
}

/// Returns whether a column holds a value that no store writes there.
fn is_wrong_type(error: &Error) -> bool {
    use Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, InvalidColumnType(..) | FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | Utf8Error(..))
}

/// Returns the error for stored data that is damaged.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt(what.into())
}

/// Adds the file's name to an error.
pub(crate) fn naming(path: &str, error: StoreError) -> StoreError {
    let named = |what: String| if what.contains(path) { what } else { format!("{path}: {what}") };
    match error {
        StoreError::Foreign(what) => StoreError::Foreign(named(what)),
        StoreError::Corrupt(what) => StoreError::Corrupt(named(what)),
        StoreError::Unavailable(what) => StoreError::Unavailable(named(what)),
        StoreError::Lost(what) => StoreError::Lost(named(what)),
        StoreError::Locked(what) => StoreError::Locked(named(what)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database shell that held a transaction was reported as another process that serves the store.
    #[test]
    fn lock_of_another_program_is_not_reported_as_a_second_server() {
        for code in [rusqlite::ffi::SQLITE_BUSY, rusqlite::ffi::SQLITE_LOCKED] {
            let locked = Error::SqliteFailure(rusqlite::ffi::Error::new(code), Some("database is locked".to_owned()));
            let error = naming("orders.db", store_error(locked));
            assert_eq!(
                error.to_string(),
                "the store is locked by another program: orders.db: database is locked. End the transaction or the backup of that \
                 program, such as a database shell"
            );
        }
    }
}
