//! Activations: requests of a backend to a run.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::policy::TurnChoices;
use crate::{Command, Headers, Job, Name, Payload, Timestamp};

/// A request of a backend to a run. Queries and evictions are variants of their own, so they can neither be mixed with
/// jobs nor reach a transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// Jobs to apply, then rounds to play.
    Turn(Turn),
    /// Questions about the state of the run, which they never change.
    Query(Vec<Query>),
    /// The run leaves memory. No workflow code runs.
    Evict,
}

/// One turn: jobs in canonical order, and the turn's record if it was played before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// The time of the turn: the only clock that workflow code sees.
    pub now: Timestamp,
    /// The jobs, in the order in which they are applied.
    pub jobs: Vec<Job>,
    /// The size of the history before this turn.
    pub history: History,
    /// Whether this turn was played before. Implied by `recorded`; set alone by backends that match commands themselves.
    pub replaying: bool,
    /// The decisions of the turn when it was first played. The replay must decide the same.
    pub recorded: Option<Box<Recorded>>,
}

impl Turn {
    /// Creates a turn that is played for the first time.
    pub fn new(now: Timestamp, jobs: Vec<Job>) -> Self {
        Self { now, jobs, ..Self::default() }
    }
}

/// The decisions of a turn when it was first played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The turn's number. It must be the number of the run's next turn; `None` is not checked.
    pub number: Option<u64>,
    /// The commands, in order.
    pub commands: Vec<Command>,
    /// The policy's choices; none under the deterministic policy.
    pub choices: Option<TurnChoices>,
    /// The build that played it.
    pub build: Name,
}

/// The size of a run's history. It is part of the record, because workflow code may read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// The size in events.
    #[n(0)]
    pub length: u64,
    /// The size in bytes.
    #[n(1)]
    pub bytes: u64,
    /// Whether the backend suggests continuing as new.
    #[n(2)]
    pub continue_as_new_suggested: bool,
}

/// One question about the state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The id by which the query is answered.
    pub id: Name,
    /// The query's name.
    pub name: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// Metadata sent with the arguments.
    pub headers: Headers,
}
