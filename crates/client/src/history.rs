//! What has happened in a run, in terms that all backends share.

use std::fmt;
use std::time::Duration;

use dacapo_core::{Failure, Name, Payload, Seq, Timestamp, text_duration_option};
use serde::{Deserialize, Serialize};

use crate::{Cursor, RunRef, Status};

/// An event in the history of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The turn that recorded it.
    pub turn: u64,
    /// The event and its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl HistoryEvent {
    /// An event of this turn.
    pub fn new(at: Timestamp, turn: u64, kind: EventKind) -> Self {
        Self { at, turn, kind }
    }
}

/// A page of the history of a run: some of its events, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryPage {
    /// The events.
    pub events: Vec<HistoryEvent>,
    /// Where the next page begins, if there is one.
    #[serde(default)]
    pub next: Option<Cursor>,
}

impl HistoryPage {
    /// A page with these events.
    pub fn new(events: Vec<HistoryEvent>, next: Option<Cursor>) -> Self {
        Self { events, next }
    }
}

/// The kind of an event in a run's history, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The run started.
    Started {
        /// The workflow's type.
        workflow: Name,
        /// The arguments.
        #[serde(default)]
        input: Vec<Payload>,
    },
    /// The run was reset: what follows was played anew.
    Reset,
    /// A signal arrived.
    Signalled {
        /// The signal's name.
        signal: Name,
        /// The arguments.
        #[serde(default)]
        input: Vec<Payload>,
    },
    /// The workflow accepted an update.
    UpdateAccepted {
        /// The update's id.
        id: Name,
    },
    /// An update arrived.
    UpdateReceived {
        /// The update's id.
        id: Name,
        /// The update's name.
        update: Name,
        /// The arguments.
        #[serde(default)]
        input: Vec<Payload>,
    },
    /// The workflow completed an update.
    UpdateCompleted {
        /// The update's id.
        id: Name,
        /// Its result.
        result: Result<Payload, Failure>,
    },
    /// A caller asked the run to cancel.
    CancelRequested {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// The workflow began an operation.
    OperationStarted(Box<OperationStart>),
    /// An operation was accepted by its receiver: a child workflow started.
    OperationAccepted {
        /// The number of the operation within its run.
        seq: Seq,
        /// The run id of a child workflow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<Name>,
    },
    /// An operation ended.
    OperationEnded {
        /// The number of the operation within its run.
        seq: Seq,
        /// Its result. Timers and delivered signals end with an empty payload.
        result: Result<Payload, Failure>,
        /// The number of attempts of an activity, the last included; 1 for other operations.
        #[serde(default = "one")]
        attempts: u32,
        /// How the attempt before the last one failed, if there was one and the backend kept its failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_failure: Option<Failure>,
    },
    /// The workflow asked an operation to cancel.
    OperationCancelled {
        /// The number of the operation within its run.
        seq: Seq,
    },
    /// The workflow took a patched path.
    Patched {
        /// The patch.
        patch: Name,
    },
    /// The workflow changed its search attributes, its memo or its published snapshot.
    Annotated {
        /// The names that changed.
        names: Vec<Name>,
    },
    /// The run closed.
    Closed {
        /// The final status.
        status: Status,
        /// The result, or the failure that explains any other end. None if the workflow continued as new; a failure if its
        /// retry policy began another run.
        #[serde(default)]
        result: Option<Result<Payload, Failure>>,
        /// The run id of the run that goes on, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_run_id: Option<Name>,
    },
    /// An event that a newer backend has and this build does not know.
    #[serde(other)]
    Unknown,
}

fn one() -> u32 {
    1
}

/// The data with which a workflow began an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OperationStart {
    /// The number of the operation within its run.
    pub seq: Seq,
    /// The kind of the operation.
    pub operation: OperationKind,
    /// The type or name: the activity, the child workflow, the signal, the promise. Empty for timers and cancel requests.
    #[serde(default)]
    pub name: Name,
    /// The arguments.
    #[serde(default)]
    pub input: Vec<Payload>,
    /// The purpose of the operation in one line, if the workflow gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// How long a timer runs.
    #[serde(default, with = "text_duration_option", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The run that a signal or a cancel request is sent to, or the workflow id of a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<RunRef>,
}

impl OperationStart {
    /// The start of an operation that has nothing but its name; a backend fills in the rest.
    pub fn new(seq: Seq, operation: OperationKind, name: Name) -> Self {
        Self { seq, operation, name, input: Vec::new(), summary: None, duration: None, target: None }
    }
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperationKind {
    /// An activity on a task queue.
    Activity,
    /// An activity in the process of the workflow.
    LocalActivity,
    /// A closure of the workflow whose result is recorded.
    SideEffect,
    /// A timer.
    Timer,
    /// A child workflow.
    Child,
    /// A signal to another run.
    SignalExternal,
    /// A request to cancel another run.
    CancelExternal,
    /// An operation of another service.
    Nexus,
    /// A promise.
    Promise,
    /// A kind that a newer backend has and this build does not know.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Activity => "activity",
            Self::LocalActivity => "local activity",
            Self::SideEffect => "side effect",
            Self::Timer => "timer",
            Self::Child => "child workflow",
            Self::SignalExternal => "signal",
            Self::CancelExternal => "cancel request",
            Self::Nexus => "Nexus operation",
            Self::Promise => "promise",
            Self::Unknown => "unknown operation",
        })
    }
}

/// A history in the backend's own format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RawHistory {
    /// The format: `dacapo-transcript` or `temporal-history`.
    pub format: String,
    /// The history as text.
    pub text: String,
}

impl RawHistory {
    /// A history in this format.
    pub fn new(format: impl Into<String>, text: impl Into<String>) -> Self {
        Self { format: format.into(), text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActivityState, Capabilities, Feature};

    #[test]
    fn unknown_words_of_a_newer_backend_are_read_as_unknown() {
        let event = r#"{"at":0,"turn":3,"event":"teleported","to":"mars"}"#;
        let event = serde_json::from_str::<HistoryEvent>(event);
        assert!(matches!(event, Ok(HistoryEvent { turn: 3, kind: EventKind::Unknown, .. })), "{event:?}");
        assert_eq!(serde_json::from_str::<OperationKind>("\"teleport\"").unwrap(), OperationKind::Unknown);
        assert_eq!(serde_json::from_str::<ActivityState>("\"dreaming\"").unwrap(), ActivityState::Unknown);
        let newer = r#"{"backend":"mars","features":["writing","teleporting"]}"#;
        let newer: Capabilities = serde_json::from_str(newer).unwrap();
        assert_eq!(newer, Capabilities::new("mars", [Feature::Writing, Feature::Unknown]));
    }
}
