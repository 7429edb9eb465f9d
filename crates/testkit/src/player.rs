//! Plays a script against a run.

use std::time::Duration;

use dacapo_core::{
    Activation, Completion, Failure, FailureKind, Job, Name, Operation, Outcome, Payload, PendingOperation, Pins,
    Query, Resolution, Run, RunOptions, Seq, Signal, Start, StartOutcome, Timestamp, Transcript, Turn, TurnRecord,
    Update, Workflow,
};

use crate::render::render_completion;
use crate::script::{JobLine, Script, Step};

/// The way in which a script is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The run stays in memory.
    Whole,
    /// The run is evicted after every turn and rebuilt from its transcript.
    Evicted,
    /// The run is played as two instances side by side.
    Double,
}

/// A script being played: the run, its record, and its output.
pub struct Player {
    workflow: Workflow,
    options: RunOptions,
    mode: Mode,
    run: Run,
    /// The turns recorded so far.
    pub transcript: Transcript,
    /// The output so far.
    pub printed: String,
}

/// The build that the kit records.
const BUILD: Name = Name::from_static("kit");

impl Player {
    /// Creates a run of this workflow before its first turn.
    pub fn new(workflow: Workflow, pins: Pins, mode: Mode) -> Self {
        let options = RunOptions { pins: pins.clone(), double_play: mode == Mode::Double, ..RunOptions::default() };
        let run = Run::new(workflow.clone(), options.clone()).expect("the kit plays what this build knows");
        let transcript = Transcript::new(workflow.name().clone(), pins);
        Self { workflow, options, mode, run, transcript, printed: String::new() }
    }

    /// Returns the run.
    pub fn run(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Plays a whole script.
    pub fn play(&mut self, script: &str) -> &mut Self {
        for step in Script::parse(script).0 {
            match step {
                Step::Turn(at, jobs) => {
                    let turn = self.turn(at, &jobs);
                    self.activate(turn);
                }
                Step::Query(name, value) => {
                    let query =
                        Query { id: "q".into(), name: name.into(), input: vec![value.into()], ..Query::default() };
                    let completion = self.run.activate(Activation::Query(vec![query]));
                    self.printed += &render_completion(&completion);
                }
                Step::Evict => {
                    let completion = self.run.activate(Activation::Evict);
                    self.printed += &render_completion(&completion);
                    self.rebuild();
                }
            }
        }
        self
    }

    /// Plays one turn, records it and prints it.
    pub fn activate(&mut self, turn: Turn) -> Completion {
        let completion = self.run.activate(Activation::Turn(turn.clone()));
        self.printed += &render_completion(&completion);
        match &completion {
            Completion::Turn(done) => {
                self.transcript.record(&turn, done, &BUILD);
                if self.mode == Mode::Evicted {
                    self.store_last_turn();
                    self.rebuild();
                }
            }
            _ => self.rebuild(),
        }
        completion
    }

    /// Encodes and decodes the last turn as stores do.
    fn store_last_turn(&mut self) {
        if let Some(record) = self.transcript.turns.last_mut() {
            *record = TurnRecord::from_bytes(&record.to_bytes()).expect("what was written can be read");
        }
    }

    /// Builds the run again from its transcript, as a worker does after an eviction or a failed activation.
    fn rebuild(&mut self) {
        match self.transcript.replay(&self.workflow, self.options.clone()) {
            Ok(run) => self.run = run,
            Err(failed) => self.printed += &format!("does not replay: {failed}\n"),
        }
    }

    /// Makes the turn of these jobs.
    pub fn turn(&self, at: Option<Duration>, jobs: &[JobLine]) -> Turn {
        let at = at.unwrap_or(Duration::from_secs(self.transcript.turns.len() as u64));
        let mut taken = Vec::new();
        let jobs = jobs.iter().map(|line| self.job(line, &mut taken)).collect();
        Turn::new(Timestamp::default().after(at), jobs)
    }

    fn job(&self, line: &JobLine, taken: &mut Vec<Seq>) -> Job {
        let value = line.value.clone().unwrap_or_default();
        let payload = Payload::from(value.clone());
        let subject = Name::from(line.subject.clone());
        let (seq, operation) = match line.verb.as_str() {
            "start" => return self.start(payload),
            "signal" => {
                return Job::Signal(Box::new(Signal { name: subject, input: vec![payload], ..Signal::default() }));
            }
            "update" => {
                let (name, id) = line.subject.split_once(' ').expect("an update has a name and an id");
                let (name, id) = (Name::from(name.to_owned()), Name::from(id.to_owned()));
                return Job::Update(Box::new(Update { id, name, input: vec![payload], ..Update::default() }));
            }
            "cancel" => return Job::Cancel { reason: value },
            "patch" => return Job::Patch { id: subject },
            "seed" => return Job::Seed { seed: line.subject.parse().expect("a seed is a number") },
            verb => self.pending(verb, &line.subject, taken),
        };
        let failure = |kind| Box::new(Failure::new(kind, value.clone()));
        let outcome = match line.verb.as_str() {
            "fail" => Outcome::Failed(failure(FailureKind::Application)),
            "drop" => Outcome::Failed(failure(FailureKind::Cancelled)),
            _ => Outcome::Completed(payload),
        };
        let failed = Some(failure(FailureKind::Application));
        let started = match line.verb.as_str() {
            "refused" => StartOutcome::Failed(failure(FailureKind::Application)),
            _ => StartOutcome::As(Name::from(value.clone())),
        };
        let resolution = match (line.verb.as_str(), operation) {
            ("fire", _) => Resolution::Timer,
            ("started" | "refused", Operation::Nexus) => Resolution::NexusStarted(started),
            ("started" | "refused", _) => Resolution::ChildStarted(started),
            ("delivered", Operation::CancelExternal) => Resolution::CancelExternal { failure: None },
            ("delivered", _) => Resolution::SignalExternal { failure: None },
            ("lost", Operation::CancelExternal) => Resolution::CancelExternal { failure: failed },
            ("lost", _) => Resolution::SignalExternal { failure: failed },
            ("backoff", _) => Resolution::Backoff { attempt: 2, pause: Duration::from_secs(90), first_scheduled: None },
            ("resolve" | "fail" | "drop", Operation::Child) => Resolution::Child(outcome),
            ("resolve" | "fail" | "drop", Operation::Nexus) => Resolution::Nexus(outcome),
            ("resolve" | "fail" | "drop", Operation::SideEffect) => Resolution::SideEffect(outcome),
            ("resolve" | "fail" | "drop", Operation::Promise) => Resolution::Promise(outcome),
            ("resolve" | "fail" | "drop", _) => Resolution::Activity(outcome),
            (verb, _) => panic!("{verb:?} is no verb of a script"),
        };
        Job::resolve(seq, resolution)
    }

    fn start(&self, input: Payload) -> Job {
        Job::Start(Box::new(Start {
            workflow: self.workflow.name().clone(),
            workflow_id: "kit".into(),
            run_id: "run".into(),
            input: vec![input],
            seed: 7,
            queue: "kit".into(),
            attempt: 1,
            ..Start::default()
        }))
    }

    /// Returns the operation of a job: by seq, or the first pending one of that name that this turn has not used yet.
    fn pending(&self, verb: &str, subject: &str, taken: &mut Vec<Seq>) -> (Seq, Operation) {
        let pending = self.run.inspect().pending;
        if let Some(seq) = subject.strip_prefix('#') {
            let seq = Seq(seq.parse().expect("a seq is a number"));
            let operation = pending.iter().find(|op| op.seq == seq).map_or(Operation::Activity, |op| op.operation);
            return (seq, operation);
        }
        let fits = |op: &&PendingOperation| {
            let timer = verb == "fire" && op.operation == Operation::Timer;
            (op.name == subject && (verb != "fire" || timer)) || (timer && subject.is_empty())
        };
        let found = pending.iter().filter(fits).find(|op| !taken.contains(&op.seq));
        let found = found.unwrap_or_else(|| panic!("nothing pending to {verb} as {subject:?}: {pending:#?}"));
        if verb != "started" {
            taken.push(found.seq);
        }
        (found.seq, found.operation)
    }
}
