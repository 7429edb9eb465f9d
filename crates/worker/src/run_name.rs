//! The names of a run.

use dacapo_core::Name;

/// The names of a run in spans, logs and reports. They never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName {
    /// The workflow type.
    pub workflow: Name,
    /// The caller's id for the workflow.
    pub workflow_id: Name,
    /// The run id.
    pub run_id: Name,
    /// The task queue that it is served on.
    pub queue: Name,
}
