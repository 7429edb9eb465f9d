//! Reading a store: descriptions, lists, histories, archives, checks.

pub(crate) mod archive;
pub(crate) mod describe;
pub(crate) mod outcome;
pub(crate) mod records;
pub(crate) mod replay_check;
pub(crate) mod verify;

use std::path::Path;
use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::Name;
use dacapo_store::Store;

use crate::crash_guard::limits::CrashLimits;
use crate::store_guard::assert_may_use_store;

/// The name of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId {
    /// Its workflow id, which the caller chose.
    pub workflow_id: Name,
    /// Its run id; by default the open run of the workflow id is meant, or the last.
    pub run_id: Option<Name>,
}

impl RunId {
    /// Names the open run of this workflow id, or the last.
    pub fn of(workflow_id: impl Into<Name>) -> Self {
        Self { workflow_id: workflow_id.into(), run_id: None }
    }

    /// Whether this names an open run with these ids.
    pub(crate) fn names(&self, workflow_id: &str, run_id: &str) -> bool {
        self.workflow_id == workflow_id && self.run_id.as_deref().is_none_or(|named| named == run_id)
    }
}

/// A reader of a store: lists and describes runs, and reads histories. Every call blocks while the store is read.
/// Builds with debug assertions panic if it is called on a thread of an async runtime: call it by `spawn_blocking`,
/// within [`allow_blocking`](dacapo_sync::allow_blocking).
#[derive(Clone)]
pub struct Reader {
    store: Arc<dyn Store>,
    crash_limits: CrashLimits,
}

impl Reader {
    /// Creates a reader of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, crash_limits: CrashLimits::default() }
    }

    /// Sets the limits by which quarantined activities are recognized: those of the process that serves the store.
    #[must_use]
    pub fn with_crash_limits(self, crash_limits: CrashLimits) -> Self {
        Self { crash_limits, ..self }
    }

    /// The store, for a thread that may block. Builds with debug assertions panic if this thread must not.
    #[track_caller]
    pub(crate) fn store(&self) -> &dyn Store {
        assert_may_use_store();
        &*self.store
    }

    /// Whether the store can be backed up.
    pub(crate) fn has_backup(&self) -> bool {
        self.store.has_backup()
    }

    /// Copies everything, as it is at one moment, into a file that does not exist yet, while others read and write.
    pub fn back_up(&self, to: &Path) -> Result<(), Error> {
        Ok(self.store().back_up(to)?)
    }
}
