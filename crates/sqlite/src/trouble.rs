//! SQLite's errors as a store's.

use rusqlite::{Error, ErrorCode};

use dacapo_store::StoreError;

/// Classifies an error by what can be done about it.
pub(crate) fn trouble(error: Error) -> StoreError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(text),
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(text),
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(text),
        _ if is_wrong_type(&error) => StoreError::Corrupt(text),
        _ => StoreError::Unavailable(text),
    }
}

/// Whether a column holds what no store writes there.
fn is_wrong_type(error: &Error) -> bool {
    use Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, InvalidColumnType(..) | FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | Utf8Error(..))
}

/// What is stored cannot be right.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt(what.into())
}

/// The same, with the file that it is about.
pub(crate) fn naming(path: &str, error: StoreError) -> StoreError {
    let named = |what: String| if what.contains(path) { what } else { format!("{path}: {what}") };
    match error {
        StoreError::Foreign(what) => StoreError::Foreign(named(what)),
        StoreError::Corrupt(what) => StoreError::Corrupt(named(what)),
        StoreError::Unavailable(what) => StoreError::Unavailable(named(what)),
        StoreError::Lost(what) => StoreError::Lost(named(what)),
        other => other,
    }
}
