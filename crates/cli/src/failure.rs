//! Why a command failed, and its exit code.

use std::fmt;

use dacapo_client::Error;

/// A failed command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that the caller gave is wrong.
    Usage(String),
    /// A call failed.
    Call(Error),
    /// Anything else: a file that cannot be written, a problem that was found.
    Other(String),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Other(_) => 1,
            Self::Call(error) => match error {
                Error::InvalidArgument(_) | Error::UnknownWorkflow { .. } => 2,
                Error::NotFound { .. }
                | Error::ActivityNotFound { .. }
                | Error::PromiseNotFound { .. }
                | Error::UpdateNotFound { .. } => 3,
                Error::Closed { .. }
                | Error::RunOpen
                | Error::RunExists(_)
                | Error::WorkflowIdInUse { .. }
                | Error::RequestIdInUse { .. }
                | Error::AlreadyResolved(_)
                | Error::UpdateRejected(_)
                | Error::Stuck(_)
                | Error::UpdateWaits(_)
                | Error::InboxFull { .. } => 4,
                Error::ShutDown | Error::Busy(_) | Error::Unavailable(_) => 5,
                Error::Unsupported { .. } | Error::ReadOnly(_) | Error::Refused(_) => 6,
                _ => 1,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Other(text) => f.write_str(text),
            Self::Call(error) => write!(f, "{error}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl From<dacapo::Error> for Failure {
    fn from(error: dacapo::Error) -> Self {
        match error {
            dacapo::Error::Client(error) => Self::Call(error),
            dacapo::Error::Url(text) => Self::Usage(text),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
