//! What the stories share.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo_core::{
    Activation, Completion, Ctx, Failure, Job, Order, Payload, Pins, Run, RunOptions, Start, Timestamp, Turn, Workflow,
};
use dacapo_testkit::{Expect, Mode, Player, check_workflow, workflow};

pub(crate) type Done = Result<Payload, Failure>;

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The first argument of a message, as text.
pub(crate) fn word(input: &[Payload]) -> String {
    input.first().and_then(Payload::as_text).unwrap_or_default().to_owned()
}

/// Text as a result.
pub(crate) fn say(text: impl Into<String>) -> Done {
    Ok(Payload::from(text.into()))
}

pub(crate) fn fail(text: &str) -> Failure {
    Failure::application(text)
}

/// What happened, in order. It belongs to one run: make it inside the workflow function.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn text(&self) -> String {
        self.lines().join(" ")
    }
}

/// Notes its own end.
pub(crate) struct Guard(pub(crate) Diary, pub(crate) &'static str);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

/// Calls its ctx when it is dropped, as clean-up code does.
pub(crate) struct CallsWhenDropped(pub(crate) Ctx);

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        let ctx = &self.0;
        ctx.now();
        ctx.random_u64();
        ctx.cancellation();
        ctx.set_state("changed", "yes");
        drop(ctx.sleep(secs(1)).summary("from a destructor"));
        drop(ctx.activity("from a destructor", ""));
        drop(ctx.launch(async { Ok(()) }));
        drop(ctx.parallel([async {}]));
        ctx.publish("changed");
    }
}

/// The pins of a run that plays the root before its handlers: `order = "root_first"`.
pub(crate) fn root_first() -> Pins {
    Pins { order: Order::RootFirst, ..Pins::default() }
}

/// The kit's own check, for a run that plays the root before its handlers.
#[track_caller]
pub(crate) fn check_root_first<F, P>(function: F, script: &str, expected: Expect)
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    check_workflow(&workflow(function), root_first(), script, expected);
}

/// One instance of a run, without a twin, played by hand.
pub(crate) fn single(workflow: &Workflow) -> Run {
    Run::new(workflow.clone(), RunOptions { double_play: false, ..RunOptions::default() }).unwrap()
}

pub(crate) fn turn(jobs: Vec<Job>) -> Activation {
    Activation::Turn(Turn::new(Timestamp::default(), jobs))
}

pub(crate) fn start() -> Activation {
    turn(vec![start_job()])
}

pub(crate) fn start_job() -> Job {
    let (workflow, queue) = ("kit".into(), "kit".into());
    Job::Start(Box::new(Start { workflow, queue, seed: 7, attempt: 1, ..Start::default() }))
}

/// A completion as scripts print it.
pub(crate) fn shown(completion: &Completion) -> String {
    dacapo_testkit::render_completion(completion)
}

/// As the kit's own check, without the lines and columns of call sites: for scripts that end in a failed activation.
#[track_caller]
pub(crate) fn check_refused<F, P>(function: F, script: &str, expected: Expect)
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    check_refused_with(Pins::default(), function, script, expected);
}

/// [`check_refused`], for a run with pins.
#[track_caller]
pub(crate) fn check_refused_with<F, P>(pins: Pins, function: F, script: &str, expected: Expect)
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    let workflow = workflow(function);
    let play = |mode| {
        let mut play = Player::new(workflow.clone(), pins.clone(), mode);
        play.play(script);
        without_lines(&play.printed)
    };
    let whole = play(Mode::Whole);
    for mode in [Mode::Evicted, Mode::Double] {
        assert_eq!(whole, play(mode), "the script played whole, and {mode:?}");
    }
    expected.assert_eq(&whole);
}

/// `kit.rs:12:34` as `kit.rs`.
pub(crate) fn without_lines(text: &str) -> String {
    let is_place = |c: char| c.is_ascii_digit() || c == ':';
    let mut parts = text.split(".rs:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(is_place);
        // The colon behind the column belongs to the sentence.
        let colon = if part[..part.len() - rest.len()].ends_with(':') { ":" } else { "" };
        format!("{text}.rs{colon}{rest}")
    })
}
