//! Transcripts: a run's turns in order. Replaying one is what "deterministic" means.

mod binary;
mod diff;
mod text;

pub use binary::TranscriptError;
pub use diff::TranscriptDifference;

use std::collections::BTreeSet;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::activation::{Activation, History, Recorded, Turn};
use crate::policy::TurnChoices;
use crate::{
    ActivationError, Command, Completion, Job, Name, Pins, Run, RunOptions, Timestamp, TurnDone, Update, Workflow,
};

/// All turns of a run, and the settings that it keeps for its whole life.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The workflow's name.
    pub workflow: Name,
    /// The settings that the run keeps for its whole life.
    pub pins: Pins,
    /// The turns, in order.
    pub turns: Vec<TurnRecord>,
}

/// One turn as it was played: its jobs and its commands. A store keeps one record for each turn.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// The turn's number in the run, from 0.
    #[n(0)]
    pub number: u64,
    /// The turn's time.
    #[n(1)]
    pub now: Timestamp,
    /// The size of the history before it.
    #[n(2)]
    pub history: History,
    /// The jobs, in order. Rejected updates are not among them; accepted ones are marked as such.
    #[n(3)]
    pub jobs: Vec<Job>,
    /// The commands, in order.
    #[n(4)]
    pub commands: Vec<Command>,
    /// The policy's choices; none under the deterministic policy.
    #[n(5)]
    pub choices: Option<TurnChoices>,
    /// The build that played it.
    #[n(6)]
    pub build: Name,
}

impl TurnRecord {
    /// Creates the record of a turn that was played, or none if it leaves no trace.
    pub fn of(turn: &Turn, done: &TurnDone, build: &Name) -> Option<Self> {
        let number = done.number?;
        let rejected: BTreeSet<&Name> = done.rejected.iter().map(|rejected| &rejected.update).collect();
        let is_rejected = |update: &Update| rejected.contains(&update.id);
        let jobs = turn.jobs.iter().filter_map(|job| match job {
            Job::Update(update) if is_rejected(update) => None,
            Job::Update(update) => Some(Job::Update(Box::new(Update { accepted: true, ..(**update).clone() }))),
            job => Some(job.clone()),
        });
        Some(Self {
            number,
            now: turn.now,
            history: turn.history,
            jobs: jobs.collect(),
            commands: done.commands.clone(),
            choices: done.choices.clone(),
            build: build.clone(),
        })
    }

    /// Converts the record into a turn to play again.
    pub fn into_turn(self) -> Turn {
        let Self { number, commands, choices, build, .. } = self;
        let recorded = Recorded { number: Some(number), commands, choices, build };
        Turn {
            now: self.now,
            jobs: self.jobs,
            history: self.history,
            replaying: true,
            recorded: Some(Box::new(recorded)),
        }
    }
}

/// A turn that could not be replayed.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("turn {turn} does not replay: {error}")]
pub struct ReplayFailed {
    /// The turn's number.
    pub turn: u64,
    /// The error.
    pub error: Box<ActivationError>,
}

impl Transcript {
    /// Creates a transcript without turns.
    pub fn new(workflow: impl Into<Name>, pins: Pins) -> Self {
        Self { workflow: workflow.into(), pins, turns: Vec::new() }
    }

    /// Adds a turn that was played. One that leaves no trace is not added.
    pub fn record(&mut self, turn: &Turn, done: &TurnDone, build: &Name) {
        self.turns.extend(TurnRecord::of(turn, done, build));
    }

    /// Plays all turns again and returns the run, ready to go on. `options` says how to play; the settings that the run
    /// keeps for its whole life come from the transcript.
    pub fn replay(&self, workflow: &Workflow, options: RunOptions) -> Result<Run, ReplayFailed> {
        let failed = |turn: usize, error| ReplayFailed { turn: turn as u64, error };
        let options = RunOptions { pins: self.pins.clone(), ..options };
        let mut run = Run::new(workflow.clone(), options).map_err(|error| failed(0, Box::new(error)))?;
        for (number, record) in self.turns.iter().enumerate() {
            match run.activate(Activation::Turn(record.clone().into_turn())) {
                Completion::Turn(_) => {}
                Completion::Failed(error) => return Err(failed(number, error)),
                other => unreachable!("a turn was answered with {other:?}"),
            }
        }
        Ok(run)
    }
}
