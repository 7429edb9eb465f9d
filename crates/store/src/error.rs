//! Errors of a store.

use thiserror::Error;

use crate::Refused;

/// Why a store did not do what was asked of it. Never recorded, never seen by workflow code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The write contradicts what the store holds. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Another process serves this store, or this one does already.
    #[error("this store is served already: {0}")]
    Busy(String),
    /// Another program has locked the store's file. Nothing was changed.
    #[error(
        "the store is locked by another program: {0}. End the transaction or the backup of that program, such as a database shell"
    )]
    Locked(String),
    /// The store has no room left. Nothing was changed; writing goes on when there is room.
    #[error("the store has no room left: {0}. Free some, and it goes on by itself")]
    Full(String),
    /// The stored data is damaged.
    #[error("the store is damaged: {0}. Restore it from a backup")]
    Corrupt(String),
    /// Acknowledged work is missing. The store is not served until the caller accepts that.
    #[error("acknowledged work is missing: {0}")]
    Lost(String),
    /// A later version wrote the store.
    #[error("the store has schema version {found}, and this build knows {known}: open it with a newer build")]
    Newer {
        /// The version found.
        found: i64,
        /// The newest version this build knows.
        known: i64,
    },
    /// The file is not a Dacapo store.
    #[error("this is no Dacapo store: {0}")]
    Foreign(String),
    /// The local folder in which a process notes what it runs cannot be used. The text says why, and what to do.
    #[error("state_dir {0}")]
    StateDir(String),
    /// This kind of store does not support the operation.
    #[error("{0}")]
    Unsupported(String),
    /// The store does not answer, or a commit's outcome is unknown: the caller may assume nothing before the store is
    /// read again.
    #[error("the store is out of reach: {0}")]
    Unavailable(String),
}

/// Converts a refused write into the error that a caller gets.
impl From<Refused> for dacapo_client::Error {
    fn from(refused: Refused) -> Self {
        let reason = refused.to_string();
        match refused {
            Refused::InUse { workflow_id, run_id, .. } | Refused::Used { workflow_id, run_id, .. } => {
                Self::WorkflowIdInUse { workflow_id, run_id, reason }
            }
            Refused::OtherRequest(request_id) => Self::RequestIdInUse { request_id, reason },
            Refused::Open => Self::RunOpen,
            Refused::Exists(run_id) => Self::RunExists(run_id),
            _ => Self::Refused(reason),
        }
    }
}

/// Converts a failure of the store into the error that a caller gets.
impl From<StoreError> for dacapo_client::Error {
    fn from(error: StoreError) -> Self {
        let why = error.to_string();
        match error {
            StoreError::Refused(refused) => refused.into(),
            StoreError::Busy(_) | StoreError::Locked(_) => Self::Busy(why),
            StoreError::Full(_) => Self::Full(why),
            StoreError::Corrupt(_) | StoreError::Lost(_) => Self::Damaged(why),
            StoreError::Newer { .. }
            | StoreError::Foreign(_)
            | StoreError::StateDir(_)
            | StoreError::Unsupported(_) => Self::Refused(why),
            StoreError::Unavailable(_) => Self::Unavailable(why),
        }
    }
}
