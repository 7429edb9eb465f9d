//! Double play: two live instances, fed the same activations, must decide the same. It sees what nothing else can: a
//! foreign value that was simply ready.

#![allow(clippy::disallowed_types, reason = "these tests do what workflow code must not do")]

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dacapo_core::{Activation, Completion, Ctx, Job, Payload, Run, RunOptions, Signal, Start, Turn, Workflow};
use dacapo_testkit::{Mode, Player, workflow};

use crate::kit::*;

const SCRIPT: &str = "start
     resolve A = a";

/// The script passes when it is played once, and fails when it is played twice, with a report that says what to do.
#[track_caller]
fn check_caught(caught: &Workflow) {
    let play = |mode| {
        let mut play = Player::new(caught.clone(), Default::default(), mode);
        play.play(SCRIPT);
        play.printed
    };
    let once = play(Mode::Whole);
    assert!(!once.contains("failed"), "nothing else would have seen it: {once}");
    let twice = play(Mode::Double);
    assert!(twice.contains("failed: two plays of the same activation differ: command"), "{twice}");
    assert!(twice.contains("Use `ctx.now()`, `ctx.random()`, a BTreeMap, `ctx.race`, or `ctx.side_effect`"), "{twice}");
}

/// T-20: any clock moves between two plays.
#[test]
fn double_play_finds_code_that_reads_a_clock() {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    check_caught(&workflow(|ctx: Ctx, _| async move {
        ctx.activity("A", "").await?;
        say(CLOCK.fetch_add(1, Ordering::Relaxed).to_string())
    }));
}

/// T-20
#[test]
fn double_play_finds_code_that_follows_the_order_of_a_hash_map() {
    check_caught(&workflow(|ctx: Ctx, _| async move {
        ctx.activity("A", "").await?;
        let map: HashMap<u32, ()> = (0..100).map(|key| (key, ())).collect();
        for key in map.into_keys() {
            ctx.set_state("key", key.to_string());
        }
        say("done")
    }));
}

/// T-20
#[test]
fn double_play_finds_code_that_draws_its_own_random_numbers() {
    check_caught(&workflow(|ctx: Ctx, _| async move {
        ctx.activity("A", "").await?;
        ctx.activity(RandomState::new().hash_one(7).to_string(), "").await
    }));
}

/// T-20, C-15: both results were there before the select looked; it tosses a coin, 64 times here.
#[test]
fn double_play_finds_an_unbiased_select_between_ready_results() {
    check_caught(&workflow(|ctx: Ctx, _| async move {
        ctx.activity("A", "").await?;
        let mut picks = String::new();
        for _ in 0..64 {
            tokio::select! {
                _ = ctx.wait_until(|| true) => picks.push('a'),
                _ = ctx.wait_until(|| true) => picks.push('b'),
            }
        }
        say(picks)
    }));
}

/// T-20: state that lives outside the run is seen by both plays.
#[test]
fn double_play_finds_state_shared_between_runs() {
    let shared = std::sync::Arc::new(AtomicU64::new(0));
    check_caught(&workflow(move |ctx: Ctx, _| {
        let shared = shared.clone();
        async move {
            ctx.activity("A", "").await?;
            match shared.fetch_add(1, Ordering::Relaxed) % 2 {
                0 => ctx.activity("even", "").await,
                _ => ctx.sleep(secs(1)).await.map(|()| Payload::empty()).map_err(Into::into),
            }
        }
    }));
}

/// T-20: a play that fails alone is told apart from one that fails twice for a reason of its own.
#[test]
fn a_failure_in_one_play_only_is_a_difference_and_in_both_is_itself() {
    let toggle = std::sync::Arc::new(AtomicU64::new(0));
    let sometimes = workflow(move |_: Ctx, input| {
        let toggle = toggle.clone();
        async move {
            assert!(toggle.fetch_add(1, Ordering::Relaxed).is_multiple_of(2), "every other time");
            Ok(input)
        }
    });
    let mut play = Player::new(sometimes, Default::default(), Mode::Double);
    play.play("start");
    assert!(
        play.printed.starts_with(
            "failed: two plays of the same activation differ: only one play failed: workflow code panicked"
        ),
        "{}",
        play.printed
    );
    let always = workflow(|_: Ctx, _| async move { panic!("every time") });
    let mut play = Player::new(always, Default::default(), Mode::Double);
    play.play("start");
    assert!(
        play.printed.starts_with("failed: workflow code panicked in the root unit, after no call: every time"),
        "{}",
        play.printed
    );
}

/// C-26: closures of side effects are the one thing that executes once: the second instance's is never handed out.
#[test]
fn closure_of_a_side_effect_is_handed_out_once() {
    let once = workflow(|ctx: Ctx, _| async move { ctx.side_effect("once", || async { say("ran") }).await });
    let mut play = Player::new(once, Default::default(), Mode::Double);
    play.play("start");
    let seq = play.run().inspect().pending[0].seq;
    assert!(play.run().take_closure(seq).is_some());
    assert!(play.run().take_closure(seq).is_none());
    play.play("resolve once = ran");
    assert_eq!(play.printed, "turn 0  [] side effect once\nturn 1  [] complete ran\n");
}

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// The moment in which the second play ends.
struct Back;

impl Drop for Back {
    fn drop(&mut self) {
        SILENT.set(false);
    }
}

/// Says something when it is dropped.
struct LastWords(Arc<Mutex<Vec<String>>>);

impl Drop for LastWords {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(format!("dropped, silent {}", SILENT.get()));
    }
}

/// A log subscriber sees each play once: the second play, and its end, run within the silencer.
#[test]
fn second_play_of_a_turn_runs_within_the_silencer() {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let says = said.clone();
    let workflow = Workflow::new("says", move |ctx: Ctx, _| {
        let says = says.clone();
        async move {
            let _last = LastWords(says.clone());
            let say = |word: &str| {
                let first = ctx.first_time().map(|unit| unit.to_string());
                says.lock().unwrap().push(format!("{word}, silent {}, first {first:?}", SILENT.get()));
            };
            say("begun");
            ctx.next_signal("go").await?;
            say("gone on");
            ctx.next_signal("never").await?;
            Ok(Payload::empty())
        }
    });
    let silencer = Arc::new(|| {
        SILENT.set(true);
        Box::new(Back) as Box<dyn std::any::Any>
    });
    let options = RunOptions { double_play: true, silencer: Some(silencer), ..RunOptions::default() };
    let mut run = Run::new(workflow, options).unwrap();
    let start = Job::Start(Box::new(Start { workflow: "says".into(), ..Start::default() }));
    let go = Job::Signal(Box::new(Signal { name: "go".into(), ..Signal::default() }));
    for (job, replaying) in [(start, true), (go, false)] {
        let turn = Turn { jobs: vec![job], replaying, ..Turn::default() };
        assert!(matches!(run.activate(Activation::Turn(turn)), Completion::Turn(_)));
    }
    assert_eq!(
        said.lock().unwrap().split_off(0),
        [
            "begun, silent false, first None",
            "begun, silent true, first None",
            "gone on, silent false, first Some(\"[]\")",
            "gone on, silent true, first None",
        ]
    );
    drop(run);
    assert_eq!(*said.lock().unwrap(), ["dropped, silent false", "dropped, silent true"]);
}
