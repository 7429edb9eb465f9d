//! Which run a call is about.

use std::fmt;

use dacapo_core::Name;
use serde::{Deserialize, Serialize};

/// A reference to a run: its workflow id, and its run id if one certain run is meant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRef {
    /// The caller's name for the run.
    pub workflow_id: Name,
    /// The run id; without one, the open run of the workflow id is meant, or the last if none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Name>,
    /// Where the backend of this connection finds the run, as its answer to a start said. It is not serialised: it means
    /// nothing to another process.
    #[serde(skip)]
    locator: Option<u64>,
}

/// Two references are equal if they name the same run, wherever it is found.
impl PartialEq for RunRef {
    fn eq(&self, other: &Self) -> bool {
        (&self.workflow_id, &self.run_id) == (&other.workflow_id, &other.run_id)
    }
}

impl Eq for RunRef {}

impl RunRef {
    /// Returns a reference to the open run of this workflow id, or the last.
    pub fn latest(workflow_id: impl Into<Name>) -> Self {
        Self { workflow_id: workflow_id.into(), run_id: None, locator: None }
    }

    /// This run of this workflow id.
    pub fn exact(workflow_id: impl Into<Name>, run_id: impl Into<Name>) -> Self {
        Self { workflow_id: workflow_id.into(), run_id: Some(run_id.into()), locator: None }
    }

    /// Adds where this backend finds the run, so that it finds it faster when the reference comes back. It is a hint: a
    /// backend that gets one must check that the run found there is the one that the reference names.
    #[must_use]
    pub fn found_at(mut self, locator: u64) -> Self {
        self.locator = Some(locator);
        self
    }

    /// Returns where the backend that made the reference finds the run, if it said so.
    pub fn locator(&self) -> Option<u64> {
        self.locator
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
