//! What the tests of this suite share: options from workflows and activities, and a play over every cache.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure, Headers, Name, Payload, Retry, Signal, Timestamp, Update, Workflow};
use dacapo_engine::{Cache, CrashLimits, Options, RunDescription, RunId, UpdateStage, WaitFor};
use dacapo_store::Status;
use dacapo_testkit::{CACHES, Simulation};
use dacapo_worker::{Activity, ActivityCtx};

/// Options that serve nothing yet.
pub(crate) fn options() -> Options {
    Options { build: "test".into(), ..Options::default() }
}

/// Settings by which the third death of a process leads to quarantine at once, without delays before.
pub(crate) fn without_delays() -> Options {
    let crash_limits = CrashLimits { delay_after: 0, quarantine_after: 3, ..CrashLimits::default() };
    Options { crash_limits, ..options() }
}

/// Adds things to serve.
pub(crate) trait Serve {
    fn workflow<F, P>(self, name: &'static str, code: F) -> Self
    where
        F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static;
    fn activity<F>(self, name: &'static str, code: F) -> Self
    where
        F: Fn(ActivityCtx, Payload) -> Result<Payload, Failure> + Send + Sync + 'static;
    /// An activity that waits for something before it ends.
    fn waiting<F, P>(self, name: &'static str, code: F) -> Self
    where
        F: Fn(ActivityCtx, Payload) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static;
    fn cache(self, cache: Cache) -> Self;
}

impl Serve for Options {
    fn workflow<F, P>(mut self, name: &'static str, code: F) -> Self
    where
        F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let workflow = Workflow::new(name, move |ctx, input: Vec<Payload>| {
            code(ctx, input.into_iter().next().unwrap_or_default())
        });
        self.registry.workflow(workflow).unwrap();
        self
    }

    fn activity<F>(mut self, name: &'static str, code: F) -> Self
    where
        F: Fn(ActivityCtx, Payload) -> Result<Payload, Failure> + Send + Sync + 'static,
    {
        let activity =
            Activity::blocking(name, move |ctx, input| code(ctx, input.into_iter().next().unwrap_or_default()));
        self.registry.activity(activity).unwrap();
        self
    }

    fn waiting<F, P>(mut self, name: &'static str, code: F) -> Self
    where
        F: Fn(ActivityCtx, Payload) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let activity = Activity::new(name, move |ctx, input| code(ctx, input.into_iter().next().unwrap_or_default()));
        self.registry.activity(activity).unwrap();
        self
    }

    fn cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }
}

/// Notes that activities leave in the world.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Vec<String>>>);

impl World {
    pub(crate) fn note(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// A gate that activities wait at until the test opens it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<Option<Result<Payload, Failure>>>>);

impl Gate {
    pub(crate) fn open(&self, result: Result<Payload, Failure>) {
        *self.0.lock().unwrap() = Some(result);
    }

    pub(crate) fn shut(&self) {
        *self.0.lock().unwrap() = None;
    }

    pub(crate) fn pass(&self) -> impl Future<Output = Result<Payload, Failure>> + Send + use<> {
        let gate = self.0.clone();
        poll_fn(move |_| gate.lock().unwrap().clone().map_or(Poll::Pending, Poll::Ready))
    }
}

/// A story's moments, counted from its beginning.
pub(crate) fn since_start(at: Timestamp) -> Duration {
    at.since(Timestamp::from_millis(1_000_000_000_000))
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Tries that come one second apart.
pub(crate) fn every_second(attempts: u32) -> Retry {
    Retry { factor: 1.0, attempts, ..Retry::exponential() }
}

pub(crate) fn text(payload: &Payload) -> String {
    payload.as_text().unwrap_or_default().to_owned()
}

pub(crate) fn payload(text: impl Into<String>) -> Payload {
    Payload::from(text.into())
}

/// A run that returned nothing.
pub(crate) fn completed_empty() -> (Status, Result<Payload, Failure>) {
    (Status::Completed, Ok(Payload::empty()))
}

pub(crate) fn completed(text: &str) -> (Status, Result<Payload, Failure>) {
    (Status::Completed, Ok(payload(text)))
}

/// How a run stands, and the chain of failures it came to.
#[track_caller]
pub(crate) fn failed(sim: &Simulation, workflow_id: &'static str) -> (Status, String) {
    let (status, result) = sim.result(workflow_id);
    (status, result.expect_err("the run fails").to_string())
}

pub(crate) fn describe(sim: &Simulation, workflow_id: &'static str) -> RunDescription {
    sim.engine().describe(&RunId::of(workflow_id)).expect("the run is known")
}

pub(crate) fn status(sim: &Simulation, workflow_id: &'static str) -> Status {
    describe(sim, workflow_id).status
}

/// Why a run is stuck, how often it was tried, and when it is tried again.
#[track_caller]
pub(crate) fn stuck(sim: &Simulation, workflow_id: &'static str) -> (String, u32, Duration) {
    let stuck = describe(sim, workflow_id).stuck.expect("the run is stuck");
    (stuck.reason, stuck.attempts, since_start(stuck.retry))
}

pub(crate) fn signal_of(name: &'static str, value: impl Into<String>) -> Signal {
    Signal { name: name.into(), input: vec![payload(value)], ..Signal::default() }
}

#[track_caller]
pub(crate) fn signal(sim: &Simulation, to: &'static str, name: &'static str, value: impl Into<String>) {
    sim.wait(sim.engine().signal(&RunId::of(to), signal_of(name, value), None)).expect("the signal is taken");
}

pub(crate) fn update_of(id: &'static str, name: &'static str, value: &str) -> Update {
    Update { id: id.into(), name: name.into(), input: vec![payload(value)], ..Update::default() }
}

#[track_caller]
pub(crate) fn update(
    sim: &Simulation,
    to: &'static str,
    id: &'static str,
    name: &'static str,
    value: &str,
    wait: WaitFor,
) -> Result<UpdateStage, Error> {
    sim.wait(sim.engine().update(&RunId::of(to), update_of(id, name, value), wait))
}

#[track_caller]
pub(crate) fn query(sim: &Simulation, of: &'static str, name: &'static str) -> Result<String, Error> {
    let answer = sim.wait(sim.engine().query(&RunId::of(of), name.into(), Vec::new(), Headers::new()));
    answer.map(|answer| text(&answer))
}

pub(crate) fn resolve(
    sim: &Simulation,
    of: &'static str,
    promise: impl Into<Name>,
    result: Result<Payload, Failure>,
) -> Result<(), Error> {
    sim.wait(sim.engine().resolve_promise(&RunId::of(of), promise.into(), result))
}

/// A run's turns, one line each: when, what came, what was decided.
pub(crate) fn turns(sim: &Simulation, workflow_id: &'static str) -> String {
    turns_of(sim, &RunId::of(workflow_id))
}

pub(crate) fn turns_of(sim: &Simulation, run: &RunId) -> String {
    let transcript = sim.engine().reader().history(run).expect("the history can be read");
    let lines = transcript.turns.iter().map(|turn| {
        let jobs: Vec<String> = turn.jobs.iter().map(ToString::to_string).collect();
        let commands: Vec<String> = turn.commands.iter().map(|command| command.kind.to_string()).collect();
        let line =
            format!("{} at {:?}: {} -> {}", turn.number, since_start(turn.now), jobs.join(", "), commands.join(", "));
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// How many tasks, timers and unseen messages the store holds for a run.
pub(crate) fn rows(sim: &Simulation, workflow_id: &'static str) -> (usize, usize, usize) {
    let run = describe(sim, workflow_id).run;
    let timers = sim.store().due(Timestamp(u64::MAX), usize::MAX >> 1).unwrap();
    let timers = timers.iter().filter(|timer| timer.run == run).count();
    (sim.store().tasks_of(run).unwrap().len(), timers, sim.store().unseen(run).unwrap().len())
}

/// Nothing of a run is left but the run.
pub(crate) const NO_ROWS: (usize, usize, usize) = (0, 0, 0);

/// Plays a story over every cache, and checks that all of them leave the same histories, byte for byte. The story gives
/// the workflow ids whose histories are compared.
#[track_caller]
pub(crate) fn over_every_cache(options: impl Fn() -> Options, story: impl Fn(&Simulation) -> Vec<&'static str>) {
    over_every_cache_and_restart(options, |sim| {
        let ids = story(&sim);
        (sim, ids)
    });
}

/// The same for stories in which the process ends and another begins.
#[track_caller]
pub(crate) fn over_every_cache_and_restart(
    options: impl Fn() -> Options,
    story: impl Fn(Simulation) -> (Simulation, Vec<&'static str>),
) {
    let mut first: Option<Vec<String>> = None;
    for cache in CACHES {
        let (sim, ids) = story(Simulation::new(options().cache(cache)));
        let histories: Vec<String> = ids.into_iter().map(|id| sim.history(id)).collect();
        match &first {
            None => first = Some(histories),
            Some(first) => assert_eq!(*first, histories, "{cache:?} and {:?} differ", CACHES[0]),
        }
    }
}
