//! Which run a call is about.

use std::fmt;

use dacapo_core::Name;
use serde::{Deserialize, Serialize};

/// Names a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    /// The caller's name for the run.
    pub workflow_id: Name,
    /// The run id; without one, the open run of the workflow id is meant, or the last if none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Name>,
    /// Where the backend finds the run, as its answer to a start said. Callers pass it on and do not make one up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locator: Option<u64>,
}

impl RunRef {
    /// The open run of this workflow id, or the last.
    pub fn latest(workflow_id: impl Into<Name>) -> Self {
        Self { workflow_id: workflow_id.into(), run_id: None, locator: None }
    }

    /// This run of this workflow id.
    pub fn exact(workflow_id: impl Into<Name>, run_id: impl Into<Name>) -> Self {
        Self { workflow_id: workflow_id.into(), run_id: Some(run_id.into()), locator: None }
    }
}

impl fmt::Display for RunRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run_id {
            Some(run_id) => write!(f, "{} ({run_id})", self.workflow_id),
            None => write!(f, "{}", self.workflow_id),
        }
    }
}
