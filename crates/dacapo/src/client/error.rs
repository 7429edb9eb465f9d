//! What a program can get instead of what it asked for.

use std::fmt;

use dacapo_core::{Failure, Name};
use dacapo_engine::EngineError;
use dacapo_store::Status;
use dacapo_worker::{RegistryError, SettingErrors};
use thiserror::Error;

/// What a program gets instead of what it asked for. Workflow code never sees one of these: it sees a
/// [`Failure`](crate::Failure).
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL says nothing that can be opened.
    #[error("{0}")]
    Url(String),
    /// What is to be served cannot be.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Settings that cannot be.
    #[error(transparent)]
    Settings(#[from] SettingErrors),
    /// Too much code that was asked to stop runs on, so the program has shut down.
    #[error("{0}")]
    Zombies(String),
    /// The run is closed, and not with a result.
    #[error("run {workflow_id:?} is {status}: {failure}")]
    Run {
        /// Which.
        workflow_id: Name,
        /// How it ended.
        status: Status,
        /// Why.
        failure: Box<Failure>,
    },
    /// An update was accepted, and then failed.
    #[error("the update failed: {0}")]
    Update(Box<Failure>),
    /// A value cannot be encoded, or what came is of another type than asked for.
    #[error("{0}")]
    Value(Box<Failure>),
    /// The engine refused, or is in trouble.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The operating system refused.
    #[error("{0}")]
    System(String),
}

/// The words, because this is what `main` prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a program gets.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn value(failure: Failure) -> Self {
        Self::Value(Box::new(failure))
    }
}
