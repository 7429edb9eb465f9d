//! The targets of commands.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::Name;

/// The kinds of operation. Every operation has a seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// An activity on a task queue.
    #[n(0)]
    Activity,
    /// An activity in the workflow's own process.
    #[n(1)]
    LocalActivity,
    /// A closure of the workflow.
    #[n(2)]
    SideEffect,
    /// A timer.
    #[n(3)]
    Timer,
    /// A child workflow.
    #[n(4)]
    Child,
    /// A signal to another workflow.
    #[n(5)]
    SignalExternal,
    /// A request to another workflow to cancel.
    #[n(6)]
    CancelExternal,
    /// An operation of another service.
    #[n(7)]
    Nexus,
    /// A promise.
    #[n(8)]
    Promise,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Activity => "activity",
            Self::LocalActivity => "local activity",
            Self::SideEffect => "side effect",
            Self::Timer => "timer",
            Self::Child => "child",
            Self::SignalExternal => "signal external",
            Self::CancelExternal => "cancel external",
            Self::Nexus => "nexus",
            Self::Promise => "promise",
        })
    }
}

/// Another workflow.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Any workflow, by its id.
    #[n(0)]
    Workflow {
        /// The namespace; the run's own by default.
        #[n(0)]
        namespace: Option<Name>,
        /// The workflow id.
        #[n(1)]
        workflow_id: Name,
        /// One run of it; the open one by default.
        #[n(2)]
        run_id: Option<Name>,
    },
    /// A child of this run, by its workflow id.
    #[n(1)]
    Child {
        /// The child's workflow id.
        #[n(0)]
        workflow_id: Name,
    },
}

impl Target {
    /// Returns the open run of this workflow id, in the run's own namespace.
    pub fn workflow(workflow_id: impl Into<Name>) -> Self {
        Self::Workflow { namespace: None, workflow_id: workflow_id.into(), run_id: None }
    }
}

/// The open run of this workflow id.
impl From<Name> for Target {
    fn from(workflow_id: Name) -> Self {
        Self::workflow(workflow_id)
    }
}

/// The open run of this workflow id.
impl From<&'static str> for Target {
    fn from(workflow_id: &'static str) -> Self {
        Self::workflow(workflow_id)
    }
}

/// The open run of this workflow id.
impl From<String> for Target {
    fn from(workflow_id: String) -> Self {
        Self::workflow(workflow_id)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workflow { workflow_id, run_id: None, .. } => write!(f, "{workflow_id}"),
            Self::Workflow { workflow_id, run_id: Some(run_id), .. } => write!(f, "{workflow_id}/{run_id}"),
            Self::Child { workflow_id } => write!(f, "child {workflow_id}"),
        }
    }
}
