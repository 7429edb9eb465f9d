//! Completions: a run's one answer to an activation.

use std::fmt;

use crate::policy::TurnChoices;
use crate::{ActivationError, CallSite, Command, Failure, Name, Payload, Seq, Signal, UnitId, Update};

/// The one answer to an activation.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "nearly every completion is that of a turn")]
pub enum Completion {
    /// The turn was played; these are its commands.
    Turn(TurnDone),
    /// The answers, one for each query, in order.
    Query(Vec<Answer>),
    /// The run has left memory.
    Evicted,
    /// Nothing was decided and nothing may be committed. The run must be evicted and played again from the beginning.
    Failed(Box<ActivationError>),
}

/// A turn that was played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnDone {
    /// The turn's number in the run, from 0. `None` if all its jobs were updates that were rejected: such a turn leaves
    /// no trace.
    pub number: Option<u64>,
    /// The commands, in order. Replay matches a command by its position in this list.
    pub commands: Vec<Command>,
    /// Updates that were rejected. They leave no trace in the transcript.
    pub rejected: Vec<Rejected>,
    /// The policy's choices; none under the deterministic policy.
    pub choices: Option<TurnChoices>,
    /// The snapshot for queries, if the turn published one.
    pub published: Option<Payload>,
    /// Warnings for people to read.
    pub warnings: Vec<Warning>,
    /// Whether the run is closed now.
    pub closed: bool,
    /// If the run is closed now: signals that no wait and no handler took, in the order in which they came. The backend
    /// may hand them to the run that continues this one.
    pub leftover: Vec<Signal>,
    /// If this turn continues as new: updates that no handler has begun to handle. The new run handles them.
    pub left_updates: Vec<Update>,
    /// Operations that were open when the run closed and that workflow code had not detached, by seq. They end with the
    /// run, without a command.
    pub dropped: Vec<Seq>,
}

/// An update that was rejected before it was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The update's id.
    pub update: Name,
    /// The reason.
    pub failure: Failure,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The query's id.
    pub id: Name,
    /// The answer.
    pub result: Result<Payload, Failure>,
}

/// A warning for people to read. It changed no decision.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The code asks for other tuning than was recorded. The recorded value holds for this command.
    Tuning {
        /// The command's position in its turn.
        position: usize,
        /// The command, as recorded.
        command: String,
        /// The fields that differ.
        fields: Vec<&'static str>,
        /// The call site that sets the new value.
        site: CallSite,
    },
    /// A handler asked for work after the workflow had returned. The work is ignored, because nothing could receive its
    /// result.
    IgnoredAfterClose {
        /// The handler.
        unit: UnitId,
        /// The command it asked for.
        command: String,
        /// The call site.
        site: CallSite,
    },
    /// The workflow returned while handlers were waiting; they were abandoned.
    UnfinishedHandlers {
        /// The handlers.
        units: Vec<UnitId>,
    },
    /// A signal handler failed. Only that handler ends.
    SignalHandlerFailed {
        /// The handler.
        unit: UnitId,
        /// The failure.
        failure: Failure,
    },
    /// A destructor panicked while units of the run were dropped.
    DestructorPanicked {
        /// The panic's message.
        message: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tuning { position, command, fields, site } => write!(
                f,
                "{} of command {position}, {command}, was recorded differently from what {site} asks for now; the recorded value holds for this run",
                fields.join(", ")
            ),
            Self::IgnoredAfterClose { unit, command, site } => write!(
                f,
                "handler {unit} asked for {command} at {site} after the workflow had returned; it is ignored: wait for handlers before returning, or set unfinished handlers to wait"
            ),
            Self::UnfinishedHandlers { units } => {
                let units: Vec<String> = units.iter().map(UnitId::to_string).collect();
                write!(f, "the workflow returned while {} still waited; abandoned", units.join(" "))
            }
            Self::SignalHandlerFailed { unit, failure } => write!(f, "signal handler {unit} failed: {failure}"),
            Self::DestructorPanicked { message } => {
                write!(f, "a destructor panicked while the run was taken apart: {message}")
            }
        }
    }
}
