//! What a ctx answers at once, and what of it is a command.

use std::collections::BTreeMap;

use dacapo_core::{ActivationError, ContinueAsNew, Ctx, Job, Name, Payload, Pins, Run, RunOptions};
use dacapo_testkit::{Mode, Player, check, check_replay, expect, workflow};

use crate::kit::*;

fn publishing(value: &'static str) -> impl Fn(Ctx, Payload) -> std::pin::Pin<Box<dyn Future<Output = Done> + Send>> {
    move |ctx: Ctx, _| {
        Box::pin(async move {
            ctx.publish(value);
            ctx.activity("A", "").await
        })
    }
}

fn setting(value: &'static str) -> impl Fn(Ctx, Payload) -> std::pin::Pin<Box<dyn Future<Output = Done> + Send>> {
    move |ctx: Ctx, _| {
        Box::pin(async move {
            ctx.set_state("key", value);
            ctx.activity("A", "").await
        })
    }
}

/// C-27
#[test]
fn a_published_snapshot_is_no_command_and_may_change() {
    check_replay(
        publishing("old"),
        "start\n resolve A",
        publishing("new"),
        expect![[r#"
        turn 0  [] activity A
          published new
        turn 1  [] complete
    "#]],
    );
}

/// C-27, T-24: the value is compared, not the key alone.
#[test]
fn a_durable_key_is_a_command_and_may_not_change() {
    let mut recorded = Player::new(workflow(setting("old")), Pins::default(), Mode::Whole);
    recorded.play("start\n resolve A");
    let replayed = recorded.transcript.replay(&workflow(setting("new")), RunOptions::default());
    let failed = replayed.err().unwrap().to_string();
    assert!(failed.contains("value: recorded Some(old), new Some(new)"), "{failed}");
}

/// C-27: of several snapshots in a turn the last one holds.
#[test]
fn the_last_snapshot_of_a_turn_is_the_one_that_is_published() {
    check(
        |ctx: Ctx, _| async move {
            ctx.publish("one");
            ctx.publish("two");
            ctx.activity("A", "").await?;
            ctx.activity("B", "").await?;
            ctx.publish("three");
            say("done")
        },
        "start
         resolve A
         resolve B",
        expect![[r#"
            turn 0  [] activity A
              published two
            turn 1  [] activity B
            turn 2  [] complete done
              published three
        "#]],
    );
}

/// S0-19, C-27
#[test]
fn durable_keys_are_set_read_and_cleared() {
    check(
        |ctx: Ctx, _| async move {
            ctx.set_state("key", "one");
            ctx.set_state("key", "two");
            let two = ctx.get_state("key");
            ctx.clear_state("key");
            say(format!("{two:?} {:?} {:?}", ctx.get_state("key"), ctx.get_state("other")))
        },
        "start",
        expect![[r#"
            turn 0  [] state key = one  [] state key = two  [] state key cleared  [] complete Some(two) None None
        "#]],
    );
}

fn entry<T: From<&'static str>>(name: &'static str, value: Option<&'static str>) -> (Name, Option<T>) {
    (name.into(), value.map(T::from))
}

/// S0-19
#[test]
fn attribute_and_memo_changes_are_commands_and_merge_into_the_run() {
    check(
        |ctx: Ctx, _| async move {
            ctx.set_attrs([entry("b", Some("2")), entry("a", Some("1"))]);
            ctx.set_attrs([entry("a", None)]);
            ctx.set_memo([entry("note", Some("kept")), entry("draft", Some("x"))]);
            ctx.set_memo([entry("draft", None)]);
            let info = ctx.info().unwrap();
            say(format!("{:?} {:?}", info.search_attributes, info.memo))
        },
        "start",
        expect![[r#"
            turn 0  [] search attributes a b  [] search attributes a  [] memo draft note  [] memo draft  [] complete {"b": Keyword("2")} {"note": kept}
        "#]],
    );
}

async fn patched(ctx: Ctx, _: Payload) -> Done {
    ctx.activity("A", "").await?;
    if ctx.patched("p") { ctx.activity("new", "").await } else { ctx.activity("old", "").await }
}

async fn unpatched(ctx: Ctx, _: Payload) -> Done {
    ctx.activity("A", "").await?;
    ctx.activity("old", "").await
}

/// T-7
#[test]
fn a_run_that_reaches_a_patch_for_the_first_time_takes_the_new_path_and_marks_it() {
    check(
        patched,
        "start
         resolve A
         resolve new = done",
        expect![[r#"
            turn 0  [] activity A
            turn 1  [] patch p  [] activity new
            turn 2  [] complete done
        "#]],
    );
}

/// T-7
#[test]
fn a_run_that_was_recorded_before_the_patch_keeps_the_old_path() {
    check_replay(
        unpatched,
        "start\n resolve A\n resolve old = done",
        patched,
        expect![[r#"
        turn 0  [] activity A
        turn 1  [] activity old
        turn 2  [] complete done
    "#]],
    );
}

/// T-7: a backend that matches commands itself says beforehand which patches a history holds.
#[test]
fn a_notified_patch_is_known_before_any_code_runs() {
    let at_once = workflow(|ctx: Ctx, _| async move { say(ctx.patched("p").to_string()) });
    let replayed = |jobs: &str| {
        let play = Player::new(at_once.clone(), Pins::default(), Mode::Whole);
        let dacapo_testkit::Step::Turn(at, jobs) = dacapo_testkit::Script::parse(jobs).0.remove(0) else { panic!() };
        let turn = dacapo_core::Turn { replaying: true, ..play.turn(at, &jobs) };
        shown(&single(&at_once).activate(dacapo_core::Activation::Turn(turn)))
    };
    assert_eq!(replayed("start, patch p"), "turn 0  [] patch p  [] complete true\n");
    assert_eq!(replayed("start"), "turn 0  [] complete false\n");
}

/// T-7
#[test]
fn a_deprecated_patch_can_be_removed_without_shifting_anything() {
    let deprecated = |ctx: Ctx, _: Payload| async move {
        ctx.deprecate_patch("p");
        ctx.activity("new", "").await
    };
    let removed = |ctx: Ctx, _: Payload| async move { ctx.activity("new", "").await };
    check_replay(
        deprecated,
        "start\n resolve new = done",
        removed,
        expect![[r#"
        turn 0  [] activity new
        turn 1  [] complete done
    "#]],
    );
}

/// T-7: the first answer holds for the whole run, and one marker is enough.
#[test]
fn a_patch_is_asked_many_times_and_marked_once() {
    check(
        |ctx: Ctx, _| async move {
            let first = ctx.patched("p");
            ctx.activity("A", "").await?;
            say(format!("{first} {}", ctx.patched("p")))
        },
        "start
         resolve A",
        expect![[r#"
            turn 0  [] patch p  [] activity A
            turn 1  [] complete true true
        "#]],
    );
}

/// C-30
#[test]
fn continuing_as_new_closes_the_run_and_carries_memo_and_attributes_over() {
    let next = |ctx: Ctx, _| async move {
        ctx.set_memo([entry("note", Some("kept"))]);
        ctx.set_attrs([entry("a", Some("1"))]);
        Err(ctx.continue_as_new(ContinueAsNew { input: vec!["2".into()], ..ContinueAsNew::default() }))
    };
    check(
        next,
        "start = 1",
        expect![[r#"
        turn 0  [] memo note  [] search attributes a  [] continue as new kit
    "#]],
    );
    let mut play = Player::new(workflow(next), Pins::default(), Mode::Whole);
    play.play("start = 1");
    let command = play.transcript.turns[0].commands.pop().unwrap().kind;
    let dacapo_core::CommandKind::ContinueAsNew(next) = command else { panic!("{command}") };
    let expected = ContinueAsNew {
        workflow: "kit".into(),
        queue: Some("kit".into()),
        input: vec!["2".into()],
        memo: Some(BTreeMap::from([("note".into(), "kept".into())])),
        search_attributes: Some(BTreeMap::from([("a".into(), "1".into())])),
        ..ContinueAsNew::default()
    };
    assert_eq!(*next, expected);
}

/// C-30: the failure that continues is passed on; dropped, nothing continues.
#[test]
fn continuing_as_new_happens_only_if_its_failure_is_returned() {
    check(
        |ctx: Ctx, _| async move {
            drop(ctx.continue_as_new(ContinueAsNew::default()));
            say("stayed")
        },
        "start",
        expect![[r#"
            turn 0  [] complete stayed
        "#]],
    );
    check(
        |ctx: Ctx, _| async move {
            let next = ctx.continue_as_new(ContinueAsNew { workflow: "other".into(), ..ContinueAsNew::default() });
            Err(fail("wrapped").caused_by(next))
        },
        "start",
        expect![[r#"
            turn 0  [] continue as new other
        "#]],
    );
}

/// C-30
#[test]
fn only_the_workflow_function_itself_can_continue_as_new() {
    check_refused(
        |ctx: Ctx, _| async move {
            let inside = ctx.clone();
            let branch = async move { Err::<Payload, _>(inside.continue_as_new(ContinueAsNew::default())) };
            ctx.parallel([branch]).await.remove(0)
        },
        "start",
        expect![[r#"
            failed: scheduler violation in unit [p0], at crates/core/tests/behaviour/values.rs: only the workflow function itself can continue as new
        "#]],
    );
}

/// C-1: a run that began under rules of a later build is not played by guesswork.
#[test]
fn an_unknown_version_of_the_rules_is_refused() {
    for semantics in [0, dacapo_core::SEMANTICS + 1] {
        let pins = Pins { semantics, ..Pins::default() };
        let refused = Run::new(workflow(patched), RunOptions { pins, ..RunOptions::default() }).err();
        let known = dacapo_core::SEMANTICS;
        assert_eq!(refused, Some(ActivationError::UnknownSemantics { found: semantics, known }));
    }
}

/// A run knows the memo and the search attributes it was started with, each as what it is.
#[test]
fn a_run_begins_with_the_memo_and_attributes_of_its_start() {
    let mut run = single(&workflow(|ctx: Ctx, _| async move {
        let info = ctx.info().unwrap();
        say(format!("{:?} {:?}", info.memo, info.search_attributes))
    }));
    let Job::Start(mut start) = start_job() else { unreachable!() };
    start.memo.insert("note".into(), "for people".into());
    start.search_attributes.insert("customer".into(), "ada".into());
    let completion = run.activate(turn(vec![Job::Start(start)]));
    expect![[r#"
        turn 0  [] complete {"note": for people} {"customer": Keyword("ada")}
    "#]]
    .assert_eq(&shown(&completion));
}
