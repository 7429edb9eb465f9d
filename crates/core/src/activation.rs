//! Activations: what a backend asks of a run.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::policy::TurnChoices;
use crate::{Command, Headers, Job, Name, Payload, Timestamp};

/// What wakes a run. Queries and evictions are kinds of their own, so they can neither be mixed with jobs nor reach a
/// transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// Jobs to apply, then rounds to play.
    Turn(Turn),
    /// Questions about the state of the run, which they never change.
    Query(Vec<Query>),
    /// The run leaves memory. No workflow code runs.
    Evict,
}

/// One turn: jobs in canonical order, and what was recorded of it if it was played before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// The time of the turn: the only clock that workflow code sees.
    pub now: Timestamp,
    /// What happened, in order.
    pub jobs: Vec<Job>,
    /// How much history there was before this turn.
    pub history: History,
    /// Whether this turn was played before. Implied by `recorded`; set alone by backends that match commands themselves.
    pub replaying: bool,
    /// What was decided then, to be decided again.
    pub recorded: Option<Box<Recorded>>,
}

impl Turn {
    /// A live turn at this time.
    pub fn new(now: Timestamp, jobs: Vec<Job>) -> Self {
        Self { now, jobs, ..Self::default() }
    }
}

/// What a turn decided when it was first played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The turn's number then. It must be the run's next turn; none is not checked.
    pub number: Option<u64>,
    /// The commands, in order.
    pub commands: Vec<Command>,
    /// What the policy picked; none under the deterministic policy.
    pub choices: Option<TurnChoices>,
    /// The build that played it.
    pub build: Name,
}

/// How much history a run has. Part of the record, because code may look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// In events.
    #[n(0)]
    pub length: u64,
    /// In bytes.
    #[n(1)]
    pub bytes: u64,
    /// Whether the backend thinks it is time to continue as new.
    #[n(2)]
    pub continue_as_new_suggested: bool,
}

/// One question about the state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// By which it is answered.
    pub id: Name,
    /// The query's name.
    pub name: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// What travels beside the arguments.
    pub headers: Headers,
}
