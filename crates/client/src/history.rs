//! What has happened in a run, in terms that all backends share.

use std::fmt;

use dacapo_core::{Failure, Name, Payload, Seq, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Cursor, Status};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The turn that recorded it.
    pub turn: u64,
    /// The event and its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Some events of a run, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The events.
    pub events: Vec<HistoryEvent>,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor>,
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
        input: Vec<Payload>,
    },
    /// The run was reset: what follows was played anew.
    Reset,
    /// A signal arrived.
    Signalled {
        /// The signal's name.
        signal: Name,
        /// The arguments.
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
        reason: String,
    },
    /// The workflow began an operation.
    OperationStarted {
        /// The number of the operation within its run.
        seq: Seq,
        /// The kind of the operation.
        operation: OperationKind,
        /// The type or name: the activity, the child workflow, the promise.
        name: Name,
        /// The arguments.
        input: Vec<Payload>,
    },
    /// An operation was accepted by its receiver: a child workflow started.
    OperationAccepted {
        /// The number of the operation within its run.
        seq: Seq,
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
        /// The result; none if the run continued as new.
        result: Option<Result<Payload, Failure>>,
    },
    /// An event that a newer backend has and this build does not know.
    #[serde(other)]
    Unknown,
}

fn one() -> u32 {
    1
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
            Self::SignalExternal => "signal to",
            Self::CancelExternal => "cancel request to",
            Self::Nexus => "Nexus operation",
            Self::Promise => "promise",
            Self::Unknown => "unknown operation",
        })
    }
}

/// A history in the backend's own format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawHistory {
    /// The format: `dacapo-transcript` or `temporal-history`.
    pub format: String,
    /// The history as text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActivityState, Capabilities, Feature};

    #[test]
    fn words_of_a_newer_backend_are_read_as_unknown() {
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
