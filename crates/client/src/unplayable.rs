//! Runs that new code cannot play.

use std::fmt;

use dacapo_core::Name;
use serde::{Deserialize, Serialize};

/// A run that the code at hand cannot play.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {:?} ({}) of {}: {}", self.workflow_id, self.run_id, self.workflow, self.reason)
    }
}
