//! Activities and runs whose process died often while they ran: from the third death on they are delayed, and they go on by
//! themselves.

use std::sync::{Arc, Mutex};

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure};
use dacapo_engine::{ActivityState, CrashLimits, Options, RunId};
use dacapo_store::Doing;
use dacapo_testkit::{LayeredStore, Simulation};

use crate::crashed_store::CrashedStore;
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

fn task(sim: &Simulation, id: &'static str) -> Doing {
    Doing::Attempt(sim.store().tasks_of(describe(sim, id).run).unwrap()[0].no)
}

fn crash_count(sim: &Simulation, id: &'static str) -> u32 {
    sim.store().tasks_of(describe(sim, id).run).unwrap()[0].crash_count
}

/// The process dies so often while the activity of this run runs. Each process runs it, after its delay.
fn dies(mut sim: Simulation, store: &Arc<LayeredStore<CrashedStore>>, id: &'static str, times: u32) -> Simulation {
    for _ in 0..times {
        store.dies_while(&[task(&sim, id)]);
        sim = sim.restart();
        sim.settle();
    }
    sim
}

/// The README's `journey`, killed six times in a row in its first step, goes on by itself after at most ten seconds.
#[test]
fn activity_killed_six_times_in_a_row_continues_by_itself_within_ten_seconds() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let sim = dies(sim, &store, "a", 2);
    assert_eq!(world.count(), 3, "twice is not too often: it is tried again at once");
    let sim = dies(sim, &store, "a", 4);
    let opened = sim.now();
    assert_eq!(crash_count(&sim, "a"), 6);
    let pending = describe(&sim, "a").pending.remove(0);
    assert_eq!((pending.state, pending.next_attempt), (ActivityState::Waiting, Some(opened.after(secs(8)))));
    let (reason, _, retry) = stuck(&sim, "a");
    assert!(reason.contains("activity \"work\"") && reason.contains("died 6 times"), "{reason}");
    assert!(reason.contains("tried again by itself"), "{reason}");
    assert_eq!(retry, since_start(opened.after(secs(8))));
    let before = world.count();
    sim.advance(secs(7));
    assert_eq!(world.count(), before, "it is delayed");
    gate.open(Ok(payload("done")));
    sim.advance(secs(1));
    assert_eq!(sim.result("a"), completed("done"));
    assert!(describe(&sim, "a").closed.unwrap().since(opened) <= secs(10));
    assert_eq!(describe(&sim, "a").stuck, None);
}

/// Killing a process around a healthy activity delays others only as long as that: the delayed one takes no place.
#[test]
fn delayed_activity_does_not_keep_others_on_probation_waiting() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let sim = dies(sim, &store, "a", 5);
    sim.start("one", "b", "b").unwrap();
    sim.settle();
    store.dies_while(&[task(&sim, "b")]);
    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.notes().last().map(String::as_str), Some("b"), "b is on probation while a is delayed");
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("b"), completed("done"));
    assert_eq!(sim.result("a"), completed("done"));
}

/// An attempt that makes progress is not what kills the process, however often the process dies while it runs.
#[test]
fn changed_heartbeat_details_reset_the_crash_count() {
    let (gate, store, progress) = (Gate::default(), CrashedStore::new(), Arc::new(Mutex::new(0)));
    let (passing, reported) = (gate.clone(), progress.clone());
    let serve = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).retry(every_second(3)).await })
        .waiting("work", move |ctx, _| {
            ctx.heartbeat_payload(payload(reported.lock().unwrap().to_string())).unwrap();
            passing.pass()
        });
    let sim = Simulation::over(store.clone(), serve);
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let mut sim = sim;
    for step in 1..=5 {
        *progress.lock().unwrap() = step;
        sim = dies(sim, &store, "a", 1);
        assert_eq!(crash_count(&sim, "a"), 0, "it reported step {step}, and that is stored");
    }
    let sim = dies(sim, &store, "a", 2);
    assert_eq!(crash_count(&sim, "a"), 2, "the same report again is no progress");
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("a"), completed("done"));
}

#[test]
fn activity_is_quarantined_after_twenty_deaths_and_never_where_that_is_off() {
    for (quarantine_after, is_quarantined) in [(20, true), (0, false)] {
        let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
        let crash_limits = CrashLimits { quarantine_after, ..CrashLimits::default() };
        let serve = Options { crash_limits, ..work(&world, &gate) };
        let sim = Simulation::over(store.clone(), serve);
        sim.start("one", "a", "a").unwrap();
        sim.settle();
        let sim = dies(sim, &store, "a", 19);
        assert_eq!(describe(&sim, "a").pending[0].state, ActivityState::Waiting);
        let sim = dies(sim, &store, "a", 1);
        let state = describe(&sim, "a").pending[0].state;
        assert_eq!(state == ActivityState::Quarantined, is_quarantined, "{state}");
        gate.open(Ok(payload("done")));
        sim.advance(secs(600));
        if is_quarantined {
            assert_eq!(sim.wait(sim.engine().release(&RunId::of("a"))), Ok(()));
        }
        assert_eq!(sim.result("a"), completed("done"));
    }
}

/// A run whose code killed its process three times is delayed, says so, keeps its messages, and goes on.
#[test]
fn run_killed_three_times_is_delayed_says_so_and_goes_on_by_itself() {
    let store = CrashedStore::new();
    let serve = options().workflow("waits", |ctx: Ctx, _| async move {
        ctx.on_query("how", |_| Ok(payload("well")));
        Ok(ctx.next_signal("go").await?.input[0].clone())
    });
    let mut sim = Simulation::over(store.clone(), serve);
    sim.start("waits", "a", "").unwrap();
    sim.settle();
    let run = Doing::Run(describe(&sim, "a").run);
    for _ in 0..3 {
        store.dies_while(&[run]);
        sim = sim.restart();
        sim.settle();
    }
    let opened = sim.now();
    assert_eq!(query(&sim, "a", "how").map_err(|error| matches!(error, Error::Stuck(_))), Err(true));
    let (reason, _, retry) = stuck(&sim, "a");
    assert!(reason.contains("delayed until") && reason.contains("died 3 times"), "{reason}");
    assert_eq!(retry, since_start(opened.after(secs(1))));
    signal(&sim, "a", "go", "on");
    sim.settle();
    assert_eq!(describe(&sim, "a").turns, 1, "it is delayed");
    sim.advance(secs(1));
    assert_eq!(sim.result("a"), completed("on"));
    assert_eq!(sim.store().runs_with_crash_count().unwrap(), [], "a committed turn resets the count");
}

/// An operator need not wait for a delay: it can be released like a quarantine.
#[test]
fn delayed_activity_and_delayed_run_can_be_released_at_once() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let sim = dies(sim, &store, "a", 10);
    let before = world.count();
    assert_eq!(sim.wait(sim.engine().release(&RunId::of("a"))), Ok(()));
    sim.settle();
    assert_eq!((world.count(), crash_count(&sim, "a")), (before + 1, 0));
    let run = Doing::Run(describe(&sim, "a").run);
    let mut sim = sim;
    for _ in 0..10 {
        store.dies_while(&[run]);
        sim = sim.restart();
        sim.settle();
    }
    gate.open(Ok(payload("done")));
    sim.settle();
    assert_eq!(describe(&sim, "a").turns, 1, "the run is delayed");
    assert_eq!(sim.wait(sim.engine().release(&RunId::of("a"))), Ok(()));
    sim.settle();
    assert_eq!(describe(&sim, "a").status, dacapo_store::Status::Completed);
    let again = sim.wait(sim.engine().release(&RunId::of("a")));
    assert!(again.is_err(), "the run is neither delayed nor quarantined any more");
}

/// What is delayed says so only as long as it is.
#[test]
fn run_and_activity_no_longer_say_that_they_are_delayed_when_the_delay_is_over() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let serve = || {
        work(&world, &gate).workflow("waits", |ctx: Ctx, _| async move {
            ctx.next_signal("go").await?;
            Ok(payload(""))
        })
    };
    let mut sim = Simulation::over(store.clone(), serve());
    sim.start("one", "activity", "a").unwrap();
    sim.start("waits", "run", "").unwrap();
    sim.settle();
    for _ in 0..3 {
        store.dies_while(&[task(&sim, "activity"), Doing::Run(describe(&sim, "run").run)]);
        sim = sim.restart();
        sim.settle();
    }
    assert!(query(&sim, "run", "any").is_err(), "it is loaded, and delayed");
    for id in ["activity", "run"] {
        assert!(stuck(&sim, id).0.contains("delayed until"));
    }
    sim.advance(secs(2));
    for id in ["activity", "run"] {
        assert_eq!(describe(&sim, id).stuck, None, "{id}");
    }
    assert_eq!(world.count(), 4, "the activity runs");
}

/// A failure is an end like any other: the count begins anew.
#[test]
fn an_attempt_that_ends_in_any_way_resets_the_crash_count() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let sim = dies(sim, &store, "a", 2);
    gate.open(Err(Failure::application("no")));
    sim.settle();
    assert_eq!(crash_count(&sim, "a"), 0);
}
