//! Lists of runs.

use dacapo_core::{Name, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Description, Status};

/// A filter for runs: a run matches if everything that is set holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Only runs with this status.
    pub status: Option<Status>,
    /// Only runs of this workflow.
    pub workflow: Option<Name>,
    /// Only runs of this workflow id.
    pub workflow_id: Option<Name>,
    /// Only runs that are open and stuck.
    pub stuck: bool,
    /// Only runs that were started at this moment or later.
    pub started_from: Option<Timestamp>,
    /// Only runs that were started before this moment.
    pub started_before: Option<Timestamp>,
}

impl Filter {
    /// Returns the filter that matches all runs.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns the filter that matches open runs.
    pub fn open() -> Self {
        Self { status: Some(Status::Open), ..Self::default() }
    }

    /// Returns the filter that matches open runs that are stuck.
    pub fn stuck() -> Self {
        Self { stuck: true, ..Self::default() }
    }
}

/// The place where a page ended. Only the backend that made it can read its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// Some runs, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Page {
    /// The runs.
    pub runs: Vec<Description>,
    /// Where the next page begins, if there is one.
    #[serde(default)]
    pub next: Option<Cursor>,
}

impl Page {
    /// A page with these runs.
    pub fn new(runs: Vec<Description>, next: Option<Cursor>) -> Self {
        Self { runs, next }
    }
}
