//! What names a run.

use dacapo_core::Name;

/// What names a run in spans, logs and reports. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName {
    /// The workflow type.
    pub workflow: Name,
    /// The caller's name for the run.
    pub workflow_id: Name,
    /// Its run id.
    pub run_id: Name,
    /// The task queue that it is served on.
    pub queue: Name,
}
