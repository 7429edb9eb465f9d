//! Activities and runs whose process died often while they ran: from the third death on they are delayed, and they go on by
//! themselves.

use std::sync::{Arc, Mutex};

use dacapo_core::{Ctx, Failure};
use dacapo_engine::{ActivityState, CrashLimits, EngineError, Options, RunId};
use dacapo_store::Doing;
use dacapo_testkit::{Fronted, Stage};

use crate::haunted::Haunted;
use crate::kit::{
    Gate, Serve, World, completed, describe, every_second, options, payload, query, secs, signal, since_start, stuck,
    text,
};

/// An activity that notes its input when it begins, and ends when the gate is open.
fn work(world: &World, gate: &Gate) -> Options {
    let (world, gate) = (world.clone(), gate.clone());
    options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).retry(every_second(3)).await })
        .waiting("work", move |_, input| {
            world.note(text(&input));
            gate.pass()
        })
}

fn task(stage: &Stage, id: &'static str) -> Doing {
    Doing::Attempt(stage.store().tasks_of(describe(stage, id).run).unwrap()[0].no)
}

fn crash_count(stage: &Stage, id: &'static str) -> u32 {
    stage.store().tasks_of(describe(stage, id).run).unwrap()[0].strikes
}

/// The process dies so often while the activity of this run runs. Each process runs it, after its delay.
fn dies(mut stage: Stage, store: &Arc<Fronted<Haunted>>, id: &'static str, times: u32) -> Stage {
    for _ in 0..times {
        store.dies_while(&[task(&stage, id)]);
        stage = stage.restart();
        stage.settle();
    }
    stage
}

/// The README's `journey`, killed six times in a row in its first step, goes on by itself after at most ten seconds.
#[test]
fn activity_killed_six_times_in_a_row_continues_by_itself_within_ten_seconds() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let stage = dies(stage, &store, "a", 2);
    assert_eq!(world.count(), 3, "twice is not too often: it is tried again at once");
    let stage = dies(stage, &store, "a", 4);
    let opened = stage.now();
    assert_eq!(crash_count(&stage, "a"), 6);
    let pending = describe(&stage, "a").pending.remove(0);
    assert_eq!((pending.state, pending.next_attempt), (ActivityState::Waiting, Some(opened.after(secs(8)))));
    let (reason, _, retry) = stuck(&stage, "a");
    assert!(reason.contains("activity \"work\"") && reason.contains("died 6 times"), "{reason}");
    assert!(reason.contains("tried again by itself"), "{reason}");
    assert_eq!(retry, since_start(opened.after(secs(8))));
    let before = world.count();
    stage.advance(secs(7));
    assert_eq!(world.count(), before, "it is delayed");
    gate.open(Ok(payload("done")));
    stage.advance(secs(1));
    assert_eq!(stage.result("a"), completed("done"));
    assert!(describe(&stage, "a").closed.unwrap().since(opened) <= secs(10));
    assert_eq!(describe(&stage, "a").stuck, None);
}

/// Killing a process around a healthy activity delays others only as long as that: the delayed one takes no place.
#[test]
fn delayed_activity_does_not_keep_others_on_probation_waiting() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let stage = dies(stage, &store, "a", 5);
    stage.start("one", "b", "b").unwrap();
    stage.settle();
    store.dies_while(&[task(&stage, "b")]);
    let stage = stage.restart();
    stage.settle();
    assert_eq!(world.notes().last().map(String::as_str), Some("b"), "b is on probation while a is delayed");
    gate.open(Ok(payload("done")));
    assert_eq!(stage.result("b"), completed("done"));
    assert_eq!(stage.result("a"), completed("done"));
}

/// An attempt that makes progress is not what kills the process, however often the process dies while it runs.
#[test]
fn changed_heartbeat_details_reset_the_crash_count() {
    let (gate, store, progress) = (Gate::default(), Haunted::new(), Arc::new(Mutex::new(0)));
    let (passing, reported) = (gate.clone(), progress.clone());
    let serve = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).retry(every_second(3)).await })
        .waiting("work", move |ctx, _| {
            ctx.heartbeat_payload(payload(reported.lock().unwrap().to_string())).unwrap();
            passing.pass()
        });
    let stage = Stage::over(store.clone(), serve);
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let mut stage = stage;
    for step in 1..=5 {
        *progress.lock().unwrap() = step;
        stage = dies(stage, &store, "a", 1);
        assert_eq!(crash_count(&stage, "a"), 0, "it reported step {step}, and that is stored");
    }
    let stage = dies(stage, &store, "a", 2);
    assert_eq!(crash_count(&stage, "a"), 2, "the same report again is no progress");
    gate.open(Ok(payload("done")));
    assert_eq!(stage.result("a"), completed("done"));
}

#[test]
fn activity_is_quarantined_after_twenty_deaths_and_never_where_that_is_off() {
    for (quarantine_after, is_quarantined) in [(20, true), (0, false)] {
        let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
        let crash_limits = CrashLimits { quarantine_after, ..CrashLimits::default() };
        let serve = Options { crash_limits, ..work(&world, &gate) };
        let stage = Stage::over(store.clone(), serve);
        stage.start("one", "a", "a").unwrap();
        stage.settle();
        let stage = dies(stage, &store, "a", 19);
        assert_eq!(describe(&stage, "a").pending[0].state, ActivityState::Waiting);
        let stage = dies(stage, &store, "a", 1);
        let state = describe(&stage, "a").pending[0].state;
        assert_eq!(state == ActivityState::Quarantined, is_quarantined, "{state}");
        gate.open(Ok(payload("done")));
        stage.advance(secs(600));
        if is_quarantined {
            assert_eq!(stage.wait(stage.engine().release(&RunId::of("a"))), Ok(()));
        }
        assert_eq!(stage.result("a"), completed("done"));
    }
}

/// A run whose code killed its process three times is delayed, says so, keeps its messages, and goes on.
#[test]
fn run_killed_three_times_is_delayed_says_so_and_goes_on_by_itself() {
    let store = Haunted::new();
    let serve = options().workflow("waits", |ctx: Ctx, _| async move {
        ctx.on_query("how", |_| Ok(payload("well")));
        Ok(ctx.signal("go").await?.input[0].clone())
    });
    let mut stage = Stage::over(store.clone(), serve);
    stage.start("waits", "a", "").unwrap();
    stage.settle();
    let run = Doing::Run(describe(&stage, "a").run);
    for _ in 0..3 {
        store.dies_while(&[run]);
        stage = stage.restart();
        stage.settle();
    }
    let opened = stage.now();
    assert_eq!(query(&stage, "a", "how").map_err(|error| matches!(error, EngineError::Stuck(_))), Err(true));
    let (reason, _, retry) = stuck(&stage, "a");
    assert!(reason.contains("delayed until") && reason.contains("died 3 times"), "{reason}");
    assert_eq!(retry, since_start(opened.after(secs(1))));
    signal(&stage, "a", "go", "on");
    stage.settle();
    assert_eq!(describe(&stage, "a").turns, 1, "it is delayed");
    stage.advance(secs(1));
    assert_eq!(stage.result("a"), completed("on"));
    assert_eq!(stage.store().struck().unwrap(), [], "a committed turn resets the count");
}

/// Nobody has to wait for a delay: it can be released like a quarantine.
#[test]
fn delayed_activity_and_delayed_run_can_be_released_at_once() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let stage = dies(stage, &store, "a", 10);
    let before = world.count();
    assert_eq!(stage.wait(stage.engine().release(&RunId::of("a"))), Ok(()));
    stage.settle();
    assert_eq!((world.count(), crash_count(&stage, "a")), (before + 1, 0));
    let run = Doing::Run(describe(&stage, "a").run);
    let mut stage = stage;
    for _ in 0..10 {
        store.dies_while(&[run]);
        stage = stage.restart();
        stage.settle();
    }
    gate.open(Ok(payload("done")));
    stage.settle();
    assert_eq!(describe(&stage, "a").turns, 1, "the run is delayed");
    assert_eq!(stage.wait(stage.engine().release(&RunId::of("a"))), Ok(()));
    stage.settle();
    assert_eq!(describe(&stage, "a").status, dacapo_store::Status::Completed);
    let again = stage.wait(stage.engine().release(&RunId::of("a")));
    assert!(again.is_err(), "nothing is held back any more");
}

/// What is delayed says so only as long as it is.
#[test]
fn run_and_activity_no_longer_say_that_they_are_delayed_when_the_delay_is_over() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let serve = || {
        work(&world, &gate).workflow("waits", |ctx: Ctx, _| async move {
            ctx.signal("go").await?;
            Ok(payload(""))
        })
    };
    let mut stage = Stage::over(store.clone(), serve());
    stage.start("one", "activity", "a").unwrap();
    stage.start("waits", "run", "").unwrap();
    stage.settle();
    for _ in 0..3 {
        store.dies_while(&[task(&stage, "activity"), Doing::Run(describe(&stage, "run").run)]);
        stage = stage.restart();
        stage.settle();
    }
    assert!(query(&stage, "run", "any").is_err(), "it is loaded, and delayed");
    for id in ["activity", "run"] {
        assert!(stuck(&stage, id).0.contains("delayed until"));
    }
    stage.advance(secs(2));
    for id in ["activity", "run"] {
        assert_eq!(describe(&stage, id).stuck, None, "{id}");
    }
    assert_eq!(world.count(), 4, "the activity runs");
}

/// A failure is an end like any other: the count begins anew.
#[test]
fn an_attempt_that_ends_in_any_way_resets_the_crash_count() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let stage = dies(stage, &store, "a", 2);
    gate.open(Err(Failure::application("no")));
    stage.settle();
    assert_eq!(crash_count(&stage, "a"), 0);
}
