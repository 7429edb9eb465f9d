//! Runs that new code cannot play.

use std::fmt;

use dacapo_core::Name;
use serde::{Deserialize, Serialize};

use crate::StuckCause;

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
    /// The kind of problem.
    pub cause: StuckCause,
    /// The problem's mark among others of its kind, without the data of one run: the recorded command and the new one, each by its place in
    /// the code. Runs with the same cause and subject cannot be played for the same problem.
    pub subject: String,
    /// The report: what would happen, where, and what to do.
    pub reason: String,
}

impl Unplayable {
    /// Creates the report on a run, of a problem of which its text is all that is known.
    pub fn new(workflow_id: Name, run_id: Name, workflow: Name, reason: String) -> Self {
        let subject = reason.lines().next().unwrap_or_default().to_owned();
        Self { workflow_id, run_id, workflow, cause: StuckCause::Internal, subject, reason }
    }

    /// Adds the cause of the problem and its mark.
    #[must_use]
    pub fn caused_by(mut self, cause: StuckCause, subject: impl Into<String>) -> Self {
        (self.cause, self.subject) = (cause, subject.into());
        self
    }
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {:?} ({}) of {}: {}", self.workflow_id, self.run_id, self.workflow, self.reason)
    }
}
