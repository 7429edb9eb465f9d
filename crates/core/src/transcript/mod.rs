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

/// All turns of a run, and what it keeps for life.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The workflow's name.
    pub workflow: Name,
    /// What the run keeps for life.
    pub pins: Pins,
    /// The turns, in order.
    pub turns: Vec<TurnRecord>,
}

/// One turn as it was played: what came, and what was decided. The unit a store keeps.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// Its number in the run, from 0.
    #[n(0)]
    pub number: u64,
    /// Its time.
    #[n(1)]
    pub now: Timestamp,
    /// How much history there was before it.
    #[n(2)]
    pub history: History,
    /// What came, in order. Rejected updates are not part of it; accepted ones say so.
    #[n(3)]
    pub jobs: Vec<Job>,
    /// What was decided, in order.
    #[n(4)]
    pub commands: Vec<Command>,
    /// What the policy picked; none under the deterministic policy.
    #[n(5)]
    pub choices: Option<TurnChoices>,
    /// The build that played it.
    #[n(6)]
    pub build: Name,
}

impl TurnRecord {
    /// The record of a turn that was played, or none if it leaves no trace.
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

    /// The turn to play again.
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
    /// Which.
    pub turn: u64,
    /// Why.
    pub error: Box<ActivationError>,
}

impl Transcript {
    /// A transcript without turns.
    pub fn new(workflow: impl Into<Name>, pins: Pins) -> Self {
        Self { workflow: workflow.into(), pins, turns: Vec::new() }
    }

    /// Adds a turn that was played. One that leaves no trace is not added.
    pub fn record(&mut self, turn: &Turn, done: &TurnDone, build: &Name) {
        self.turns.extend(TurnRecord::of(turn, done, build));
    }

    /// Plays all turns again and gives the run, ready to go on. `options` says how to play; what the run keeps for life
    /// comes from the transcript.
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
