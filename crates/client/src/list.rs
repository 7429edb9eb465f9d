//! Lists of runs.

use std::fmt;

use dacapo_core::{Name, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Description, Search, Status};

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
    /// Only runs that this search finds, in its order.
    pub search: Option<Search>,
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

/// The most runs that [`Client::counts`](crate::Client::counts) counts in a group, so that a count never reads all runs.
pub const MAX_COUNT: u64 = 10_000;

/// The criterion by which runs are grouped when they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GroupBy {
    /// By their status.
    Status,
    /// By their workflow.
    Workflow,
}

/// The number of runs in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Count {
    /// The value that the runs have in common: the word of their status, or the name of their workflow. None: all were counted together.
    #[serde(default)]
    pub group: Option<String>,
    /// How many runs there are, or [`MAX_COUNT`].
    pub runs: u64,
    /// Whether there are more runs than these.
    #[serde(default)]
    pub is_capped: bool,
}

impl Count {
    /// A count of this group, of which more than [`MAX_COUNT`] runs may have been found.
    pub fn new(group: Option<String>, found: u64) -> Self {
        Self { group, runs: found.min(MAX_COUNT), is_capped: found > MAX_COUNT }
    }
}

/// The number with commas, and a plus if there are more: `10,000+`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plus = if self.is_capped { "+" } else { "" };
        write!(f, "{}{plus}", crate::grouped(self.runs as usize))
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
