//! Runs that new code cannot play.

use std::fmt;

use dacapo_core::Name;
use serde::{Deserialize, Serialize};

/// A run that the code at hand cannot play.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unplayable {
    /// Its workflow id, which the caller chose.
    pub workflow_id: Name,
    /// Its run id.
    pub run_id: Name,
    /// Its type.
    pub workflow: Name,
    /// The report: what would happen, where, and what to do.
    pub reason: String,
}

impl Unplayable {
    /// Creates the report on a run.
    pub fn new(workflow_id: Name, run_id: Name, workflow: Name, reason: String) -> Self {
        Self { workflow_id, run_id, workflow, reason }
    }
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {:?} ({}) of {}: {}", self.workflow_id, self.run_id, self.workflow, self.reason)
    }
}
