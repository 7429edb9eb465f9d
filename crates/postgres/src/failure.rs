//! What a failed statement means for the one that sent it. The only place that knows the codes of PostgreSQL's errors.

use dacapo_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::address::reason;

/// A failure, by what is to be done about it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is gone, or the server accepts no work now: connect again.
    Disconnected(String),
    /// Another transaction was in the way: do it again.
    Conflict(String),
    /// A fact that the transaction builds on has changed: read the facts and do it again.
    Premise(String),
    /// The other nodes have taken this one for dead.
    Dead,
    /// The caller gets this error.
    Store(StoreError),
}

impl Failure {
    /// Converts the failure into the error of a caller that tries no more.
    pub(crate) fn into_error(self) -> StoreError {
        match self {
            Self::Disconnected(why) => {
                StoreError::Unavailable(format!("{why}: check that PostgreSQL runs and that the URL is right"))
            }
            Self::Conflict(why) | Self::Premise(why) => StoreError::Unavailable(why),
            Self::Dead => StoreError::Unavailable("the other nodes have taken this one for dead".to_owned()),
            Self::Store(error) => error,
        }
    }

    /// Returns the first failure of statements that were sent together: those after it only say that there was one.
    pub(crate) fn first(errors: impl IntoIterator<Item = Error>) -> Option<Self> {
        let mut last = None;
        for error in errors {
            let is_consequence = error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION);
            let failure = Self::from(error);
            if !is_consequence {
                return Some(failure);
            }
            last = Some(failure);
        }
        last
    }

    /// Returns the failure of a code of the server's.
    fn of_code(code: &str, text: String) -> Self {
        match code {
            // A row that was to be new is there; a check has divided by zero.
            "23505" | "22012" => Self::Premise(text),
            // Serialization failure, deadlock, lock timeout; a statement that an operator cancelled, or that was sent too early.
            "40001" | "40P01" | "55P03" | "57014" | "25P02" | "55000" => Self::Conflict(text),
            "53100" => Self::Store(StoreError::Full(text)),
            // The server ends or begins, is a standby, has no connection or memory left, or has ended an idle or slow
            // transaction; or it is not known whether it was committed.
            "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "25P03" | "25P04" | "53000" | "53200" | "53300"
            | "40003" => Self::Disconnected(text),
            "XX001" | "XX002" => Self::Store(StoreError::Corrupt(text)),
            "28000" | "28P01" | "3D000" | "42501" => Self::Store(StoreError::Unsupported(format!(
                "PostgreSQL refuses the URL's user, password or database: {text}"
            ))),
            // The connection, or a file of the server.
            code if code.starts_with("08") || code.starts_with("58") => Self::Disconnected(text),
            _ => Self::Store(StoreError::Unavailable(text)),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = reason(&error);
        let Some(code) = error.code() else {
            // The client itself failed: at connecting, sending or receiving; or a value does not fit its column.
            let is_value = text.contains("serializing") || text.contains("deserializing") || text.contains("parameter");
            return if is_value && !error.is_closed() {
                Self::Store(StoreError::Corrupt(text))
            } else {
                Self::Disconnected(text)
            };
        };
        Self::of_code(code.code(), text)
    }
}

/// Returns the error for stored data that no store writes.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt(what.into())
}

/// Converts a value that cannot be read.
pub(crate) fn unreadable(error: Error) -> StoreError {
    corrupt(reason(&error))
}
