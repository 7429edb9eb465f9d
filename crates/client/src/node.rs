//! The processes that serve a backend.

use std::time::Duration;

use dacapo_core::{Name, text_duration_option};
use serde::{Deserialize, Serialize};

/// A process that serves the runs of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    /// The node's name.
    pub name: Name,
    /// The build that it runs.
    #[serde(default)]
    pub build: Name,
    /// The task queues that it serves.
    #[serde(default)]
    pub queues: Vec<Name>,
    /// The number of shards that it owns. None where one process owns every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<usize>,
    /// How long its lease runs from now on. Zero: the other nodes may take its shards. None where one process owns every run.
    #[serde(default, with = "text_duration_option", skip_serializing_if = "Option::is_none")]
    pub lease: Option<Duration>,
    /// Whether it is the process that answers the call.
    #[serde(default)]
    pub answers: bool,
}

impl Node {
    /// A node of this name and build, which owns every run.
    pub fn new(name: Name, build: Name, queues: Vec<Name>) -> Self {
        Self { name, build, queues, shards: None, lease: None, answers: false }
    }
}
