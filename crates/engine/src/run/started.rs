//! A run that was started.

use dacapo_core::Name;
use dacapo_store::RunNo;

/// A run that this call started, or that was started before.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedAs {
    /// Its workflow id.
    pub workflow_id: Name,
    /// Its run id.
    pub run_id: Name,
    /// Its number in the store.
    pub run: RunNo,
    /// Whether this call started it.
    pub fresh: bool,
}
