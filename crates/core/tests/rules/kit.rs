//! What all these tests use.

pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::time::Duration;

pub(crate) use dacapo_core::*;
pub(crate) use dacapo_testkit::{Mode, Player, check, check_replay, check_workflow, expect, workflow};

/// What a workflow comes to.
pub(crate) type Done = Result<Payload, Failure>;

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A workflow that ends with nothing to say.
pub(crate) fn nothing() -> Done {
    Ok(Payload::empty())
}

/// The pins of a run that plays the root before its handlers: `order = "root_first"`.
pub(crate) fn root_first() -> Pins {
    Pins { order: Order::RootFirst, ..Pins::default() }
}

/// Plays a script in memory and gives what is left of it.
pub(crate) fn play<F, P>(function: F, script: &str) -> Player
where
    F: Fn(Ctx, Payload) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    let mut play = Player::new(workflow(function), Pins::default(), Mode::Whole);
    play.play(script);
    play
}

/// The commands of a turn that must have gone well.
pub(crate) fn commands(completion: &Completion) -> &[Command] {
    match completion {
        Completion::Turn(done) => &done.commands,
        other => panic!("the turn was not played: {other:?}"),
    }
}

/// All commands of a transcript, in order, with the units that decided them.
pub(crate) fn decided(transcript: &Transcript) -> Vec<String> {
    let commands = transcript.turns.iter().flat_map(|turn| &turn.commands);
    commands.map(|command| format!("{} {}", command.unit, command.kind).trim_end().to_owned()).collect()
}

/// The start of a run of the kit's workflow with this seed.
pub(crate) fn start(seed: u64) -> Job {
    let workflow = "kit".into();
    Job::Start(Box::new(Start { workflow, seed, queue: "kit".into(), ..Start::default() }))
}

/// The result of an activity.
pub(crate) fn resolved(seq: u64, value: &'static str) -> Job {
    Job::resolve(Seq(seq), Resolution::Activity(Outcome::Completed(value.into())))
}

/// A live turn.
pub(crate) fn turn(jobs: Vec<Job>) -> Activation {
    Activation::Turn(Turn::new(Timestamp::default(), jobs))
}

/// What happened, in order: written by workflow code, read by the test.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
