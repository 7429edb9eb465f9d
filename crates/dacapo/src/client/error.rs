//! Errors of the typed interface.

use std::fmt;

use dacapo_client::Status;
use dacapo_core::{Failure, Name};
use dacapo_worker::{RegistryError, SettingErrors};
use thiserror::Error;

/// The error of a call. Workflow code never sees one of these: it sees a [`Failure`](crate::Failure).
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL names nothing that can be opened.
    #[error("{0}")]
    Url(String),
    /// Workflows or activities cannot be registered.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingErrors),
    /// The program has shut down because too much code ignores its cancellation.
    #[error("{0}")]
    Zombies(String),
    /// The run is closed without a result.
    #[error("run {workflow_id:?} ended as {status}: {failure}")]
    Run {
        /// The workflow id.
        workflow_id: Name,
        /// The run's status.
        status: Status,
        /// Why it ended so.
        failure: Box<Failure>,
    },
    /// An update was accepted, and then failed.
    #[error("the update failed: {0}")]
    Update(Box<Failure>),
    /// A value cannot be encoded, or cannot be decoded as the type asked for.
    #[error("{0}")]
    Value(Box<Failure>),
    /// The backend refused the call, or failed.
    #[error(transparent)]
    Client(#[from] dacapo_client::Error),
    /// The operating system refused.
    #[error("{0}")]
    System(String),
}

/// Prints the text of the error, because this is what `main` prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn value(failure: Failure) -> Self {
        Self::Value(Box::new(failure))
    }

    /// Creates the error for a value that cannot be decoded; `what` names the value.
    pub(crate) fn value_of(what: impl fmt::Display, mut failure: Failure) -> Self {
        failure.message = format!("{what}: {}; ask for the type that the workflow returns", failure.message);
        Self::value(failure)
    }
}
