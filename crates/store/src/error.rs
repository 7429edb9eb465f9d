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
    /// Another process serves this store.
    #[error("another process serves this store: {0}")]
    Busy(String),
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
    /// This kind of store does not support the operation.
    #[error("{0}")]
    Unsupported(String),
    /// The store does not answer, or a commit's outcome is unknown: the caller may assume nothing before the store is
    /// read again.
    #[error("the store is out of reach: {0}")]
    Unavailable(String),
}
