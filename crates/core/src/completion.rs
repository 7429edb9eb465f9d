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
    /// The turn's number in the run, from 0. None if all it held was refused: such a turn leaves no trace.
    pub number: Option<u64>,
    /// What was decided, in order. A command's position in this list is what replay matches.
    pub commands: Vec<Command>,
    /// Updates that were refused. They leave no trace in the transcript.
    pub rejected: Vec<Rejected>,
    /// What the policy picked; none under the deterministic policy.
    pub choices: Option<TurnChoices>,
    /// The snapshot for queries, if the turn published one.
    pub published: Option<Payload>,
    /// What people should know.
    pub warnings: Vec<Warning>,
    /// Whether the run is closed now.
    pub closed: bool,
    /// Signals that came to a run which is closed now and that no wait and no handler took, in the order in which they
    /// came: whoever continues the run may hand them on.
    pub leftover: Vec<Signal>,
    /// When this turn goes on as a new run: updates that nobody has begun to handle. They are that run's to handle.
    pub left_updates: Vec<Update>,
    /// Operations that were open when the run closed and that nobody had detached, by seq. They end with the run, and no
    /// command says so.
    pub dropped: Vec<Seq>,
}

/// An update that was refused before it was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The update's id.
    pub update: Name,
    /// Why.
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

/// Something people should know that changed no decision.
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
        /// Where the new value is set.
        site: CallSite,
    },
    /// A handler asked for work after the workflow had returned. It is ignored: nobody could take the result.
    IgnoredAfterClose {
        /// The handler.
        unit: UnitId,
        /// What it asked for.
        command: String,
        /// Where.
        site: CallSite,
    },
    /// The workflow returned while handlers were waiting; they were abandoned.
    UnfinishedHandlers {
        /// Which.
        units: Vec<UnitId>,
    },
    /// A signal handler failed. That ends the handler alone.
    SignalHandlerFailed {
        /// Which.
        unit: UnitId,
        /// How.
        failure: Failure,
    },
    /// A destructor panicked while the run was taken apart.
    DestructorPanicked {
        /// What it said.
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
