//! The world around a generated program: looks at what the run decided and draws what happens to it next.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use dacapo_core::{
    Activation, Completion, Failure, FailureKind, Job, Name, Operation, Outcome, Payload, Pins, Query, Resolution, Rng,
    Run, RunOptions, Seq, Signal, Start, StartOutcome, Timestamp, Transcript, Turn, TurnDone, Update, Workflow,
};

use crate::coverage::{BROKEN, Marks, TAKEN};
use crate::interpret::{CANCELLED, WORKFLOW, workflow};
use crate::ledger::Ledger;
use crate::program::{HANDLED, PHASE_SIGNAL, PHASE_UPDATE, Program, QUERIES, UPDATES, WAITED};

pub(crate) const BUILD: Name = Name::from_static("props");

/// A live play of a program: every turn with its answer, and the transcript.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) transcript: Transcript,
    pub(crate) turns: Vec<(Turn, TurnDone)>,
}

/// What went wrong, in words.
pub(crate) type Problem = String;

/// An activation may fail; it may not panic.
pub(crate) fn activate(run: &mut Run, activation: Activation) -> Result<Completion, Problem> {
    catch_unwind(AssertUnwindSafe(|| run.activate(activation))).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("the core panicked: {}", text.unwrap_or_default())
    })
}

/// Plays a turn that must not fail.
pub(crate) fn play_turn(run: &mut Run, turn: Turn) -> Result<TurnDone, Problem> {
    match activate(run, Activation::Turn(turn))? {
        Completion::Turn(done) => Ok(done),
        other => Err(format!("a turn was answered with {other:?}")),
    }
}

pub(crate) fn options(pins: &Pins, double_play: bool) -> RunOptions {
    RunOptions { pins: pins.clone(), double_play, ..RunOptions::default() }
}

pub(crate) fn new_run(workflow: &Workflow, pins: &Pins) -> Run {
    Run::new(workflow.clone(), options(pins, false)).expect("this build knows its own semantics")
}

/// The start of every generated run.
pub(crate) fn start(seed: u64) -> Job {
    Job::Start(Box::new(Start {
        workflow: WORKFLOW.into(),
        workflow_id: "props".into(),
        run_id: format!("run {seed}").into(),
        input: vec![Payload::empty()],
        seed,
        queue: "props".into(),
        attempt: 1,
        ..Start::default()
    }))
}

/// Plays a program against a drawn world, and checks the run after every turn.
pub(crate) fn record(program: &Program, seed: u64, pins: &Pins, marks: &Marks) -> Result<Recording, Problem> {
    World::new(program, seed, pins, marks).play()
}

struct World<'a> {
    rng: Rng,
    seed: u64,
    marks: &'a Marks,
    run: Run,
    ledger: Ledger,
    now: Timestamp,
    next_update: u64,
    /// How many signals of each name that is waited for came.
    sent: [u64; 2],
    cancelled: bool,
    /// Nothing is put off any more.
    calm: bool,
    recording: Recording,
}

/// Turns in which anything may happen; after them the run is cancelled and everything is resolved.
const WILD_TURNS: usize = 8;
const LAST_TURNS: usize = 12;

impl<'a> World<'a> {
    fn new(program: &Program, seed: u64, pins: &Pins, marks: &'a Marks) -> Self {
        let run = new_run(&workflow(program, marks), pins);
        let recording = Recording { transcript: Transcript::new(WORKFLOW, pins.clone()), turns: Vec::new() };
        let rng = Rng::from_seed(seed ^ 0x776f_726c_6400);
        let (ledger, now) = (Ledger::default(), Timestamp::from_millis(1_000_000));
        Self {
            rng,
            seed,
            marks,
            run,
            ledger,
            now,
            next_update: 0,
            sent: [0; 2],
            cancelled: false,
            calm: false,
            recording,
        }
    }

    fn play(mut self) -> Result<Recording, Problem> {
        let mut jobs = vec![start(self.seed)];
        while self.one_in(3) {
            let message = self.message();
            jobs.push(message);
        }
        self.turn(jobs)?;
        for _ in 0..WILD_TURNS {
            if self.ledger.closed {
                break;
            }
            let jobs = self.wild_jobs();
            self.turn(jobs)?;
            if self.one_in(6) {
                self.query()?;
            }
        }
        self.calm = true;
        for _ in 0..LAST_TURNS {
            if self.ledger.closed {
                break;
            }
            let jobs = self.last_jobs();
            self.turn(jobs)?;
        }
        if self.ledger.closed {
            self.marks.hit("closed");
            self.query()?;
            let late = Turn::new(self.now, vec![Job::Cancel { reason: String::new() }]);
            match activate(&mut self.run, Activation::Turn(late))? {
                Completion::Failed(error) if *error == dacapo_core::ActivationError::Closed => {}
                other => return Err(format!("a closed run answered a turn with {other:?}")),
            }
        }
        self.check_end()?;
        Ok(self.recording)
    }

    /// A run that was cancelled and got everything it waited for has ended, unless it shields a wait for a condition
    /// that never holds.
    fn check_end(&self) -> Result<(), Problem> {
        let inspection = self.run.inspect();
        let excused = inspection.units.iter().flat_map(|unit| &unit.waits).any(|wait| wait.what == "a condition");
        if self.ledger.closed || excused {
            return Ok(());
        }
        Err(format!("the run was given everything and does not end:\n{inspection}"))
    }

    fn turn(&mut self, jobs: Vec<Job>) -> Result<(), Problem> {
        self.now = self.now.after(Duration::from_millis(self.rng.below(3000)));
        let mut turn = Turn::new(self.now, jobs);
        turn.history.length = self.recording.turns.len() as u64;
        if turn.jobs.len() > 1 {
            self.marks.hit("several jobs in a turn");
        }
        self.ledger.expect(&turn.jobs);
        let done = play_turn(&mut self.run, turn.clone())?;
        if !done.rejected.is_empty() {
            self.marks.hit("update rejected");
        }
        self.ledger.check(&turn.jobs, &done, &self.run.inspect())?;
        self.check_signals(&turn.jobs)?;
        if let Some(broken) = BROKEN.into_iter().find(|rule| self.marks.count(rule) > 0) {
            return Err(broken.to_owned());
        }
        self.recording.transcript.record(&turn, &done, &BUILD);
        self.recording.turns.push((turn, done));
        Ok(())
    }

    /// A unit that waits for a signal has been given all that came: none is lost, and none is kept from it.
    fn check_signals(&mut self, jobs: &[Job]) -> Result<(), Problem> {
        let inspection = self.run.inspect();
        for (place, name) in WAITED.into_iter().enumerate() {
            let sent = jobs.iter().filter(|job| matches!(job, Job::Signal(signal) if signal.name == name)).count();
            self.sent[place] += sent as u64;
            let (sent, taken) = (self.sent[place], self.marks.count(TAKEN[place]));
            let waited = format!("signal {name}");
            let waits = inspection.units.iter().flat_map(|unit| &unit.waits).any(|wait| wait.what == waited);
            if taken > sent || (waits && taken != sent) {
                return Err(format!("{sent} signals {name} came and {taken} were taken:\n{inspection}"));
            }
        }
        Ok(())
    }

    fn query(&mut self) -> Result<(), Problem> {
        let name = QUERIES[self.rng.below(2) as usize];
        let query = Query { id: "q".into(), name: name.into(), ..Query::default() };
        match activate(&mut self.run, Activation::Query(vec![query]))? {
            Completion::Query(answers) => {
                if answers[0].result.is_ok() {
                    self.marks.hit("query answered");
                }
                Ok(())
            }
            other => Err(format!("a query was answered with {other:?}")),
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.rng.below(among.len() as u64) as usize]
    }

    /// Something from outside.
    fn message(&mut self) -> Job {
        let value = Payload::from(self.rng.below(4).to_string());
        let signal = |name: &'static str, value| {
            Job::Signal(Box::new(Signal { name: name.into(), input: vec![value], ..Signal::default() }))
        };
        match self.rng.below(10) {
            0..=2 => signal(self.pick(&WAITED), value),
            3 | 4 => signal(self.pick(&HANDLED), value),
            5 => signal(PHASE_SIGNAL, value),
            _ => self.update(),
        }
    }

    fn update(&mut self) -> Job {
        self.next_update += 1;
        let name = if self.one_in(3) { PHASE_UPDATE } else { self.pick(&UPDATES) };
        let input = if self.one_in(4) { "bad" } else { "good" };
        let id = Name::from(format!("update {}", self.next_update));
        Job::Update(Box::new(Update { id, name: name.into(), input: vec![input.into()], ..Update::default() }))
    }

    /// In a backend's order: seed, messages, the rest.
    fn wild_jobs(&mut self) -> Vec<Job> {
        let mut jobs = Vec::new();
        if self.one_in(24) {
            self.marks.hit("seed changed");
            jobs.push(Job::Seed { seed: self.rng.next_u64() });
        }
        while self.one_in(3) {
            let message = self.message();
            jobs.push(message);
        }
        if self.one_in(16) {
            jobs.push(self.cancel());
        }
        let mut pending = self.ledger.open();
        if self.one_in(4) {
            pending.extend(self.ledger.given_up());
        }
        for _ in 0..1 + self.rng.below(3) {
            if pending.is_empty() {
                break;
            }
            let place = self.rng.below(pending.len() as u64) as usize;
            let (seq, operation) = pending.swap_remove(place);
            self.resolve(seq, operation, &mut jobs);
        }
        if jobs.is_empty() {
            let message = self.message();
            jobs.push(message);
        }
        jobs
    }

    /// The run is cancelled, gets everything it waits for, and has no excuse not to end.
    fn last_jobs(&mut self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for name in WAITED.into_iter().chain([PHASE_SIGNAL, PHASE_SIGNAL]) {
            jobs.push(Job::Signal(Box::new(Signal {
                name: name.into(),
                input: vec!["last".into()],
                ..Signal::default()
            })));
        }
        if !self.cancelled {
            jobs.push(self.cancel());
        }
        for (seq, operation) in self.ledger.open() {
            self.resolve(seq, operation, &mut jobs);
        }
        jobs
    }

    fn cancel(&mut self) -> Job {
        self.cancelled = true;
        self.marks.hit("run cancelled");
        Job::Cancel { reason: CANCELLED.to_owned() }
    }

    fn resolve(&mut self, seq: Seq, operation: Operation, jobs: &mut Vec<Job>) {
        if self.ledger.is_given_up(seq) {
            self.marks.hit("late result ignored");
        }
        let outcome = self.outcome();
        let failure = match &outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            Outcome::Completed(_) => None,
        };
        let started = |failure: Option<Box<Failure>>| match failure {
            None => StartOutcome::As("child run".into()),
            Some(failure) => StartOutcome::Failed(failure),
        };
        let mut push = |resolution| jobs.push(Job::resolve(seq, resolution));
        let has_started = self.ledger.has_started(seq);
        let at_once = self.rng.below(2) == 0;
        match operation {
            Operation::Timer => push(Resolution::Timer),
            Operation::LocalActivity if !self.calm && self.rng.below(2) == 0 => {
                self.marks.hit("local activity after a backoff");
                push(Resolution::Backoff { attempt: 2, pause: Duration::from_secs(60), first_scheduled: None });
            }
            Operation::Activity | Operation::LocalActivity => push(Resolution::Activity(outcome)),
            Operation::SideEffect => push(Resolution::SideEffect(outcome)),
            Operation::SignalExternal => push(Resolution::SignalExternal { failure }),
            Operation::CancelExternal => push(Resolution::CancelExternal { failure }),
            Operation::Promise => push(Resolution::Promise(outcome)),
            Operation::Child if has_started => push(Resolution::Child(outcome)),
            Operation::Child if at_once && failure.is_none() => {
                push(Resolution::ChildStarted(started(None)));
                push(Resolution::Child(outcome));
            }
            Operation::Child => push(Resolution::ChildStarted(started(failure))),
            Operation::Nexus if has_started => push(Resolution::Nexus(outcome)),
            Operation::Nexus if at_once && failure.is_none() => {
                push(Resolution::NexusStarted(started(None)));
                push(Resolution::Nexus(outcome));
            }
            _ => push(Resolution::NexusStarted(started(failure))),
        }
    }

    fn outcome(&mut self) -> Outcome {
        let failed = |kind| Outcome::Failed(Box::new(Failure::new(kind, "it did not work")));
        match self.rng.below(8) {
            0 => {
                self.marks.hit("result failed");
                failed(FailureKind::Application)
            }
            1 => {
                self.marks.hit("result cancelled");
                failed(FailureKind::Cancelled)
            }
            _ => Outcome::Completed(self.rng.below(5).to_string().into()),
        }
    }
}
