//! Activities whose process died while they were tried. Runs are in `probation.rs`.

use std::pin::pin;
use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure};
use dacapo_engine::{ActivityState, Options, RunId};
use dacapo_store::Doing;
use dacapo_testkit::{LayeredStore, Simulation};

use crate::crashed_store::CrashedStore;
use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, every_second, payload, rows, secs, stuck, text, without_delays,
};

/// An activity that notes its input when it begins, and ends when the gate is open.
fn work(world: &World, gate: &Gate) -> Options {
    let (world, gate) = (world.clone(), gate.clone());
    without_delays()
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

fn state(sim: &Simulation, id: &'static str) -> ActivityState {
    describe(sim, id).pending[0].state
}

#[test]
fn attempt_is_noted_until_its_code_has_ended() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let (begun, ended) = store.noted();
    assert_eq!((begun.last(), ended), (Some(&task(&sim, "a")), begun.len() - 1));
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("a"), completed("done"));
    let (begun, ended) = store.noted();
    assert_eq!(begun.len(), ended);
}

/// Of those that ran when the process died one is tried at a time, beside all others; an attempt that ends has its count reset.
#[test]
fn attempts_that_ran_when_the_process_died_are_repeated_one_at_a_time() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    for id in ["a", "b", "c", "d"] {
        sim.start("one", id, id).unwrap();
    }
    sim.settle();
    let [a, b, c] = ["a", "b", "c"].map(|id| task(&sim, id));
    store.dies_while(&[a, b, c]);
    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.notes()[4..], ["a", "d"], "one of those with a crash count, and all others");
    assert_eq!(["a", "b", "c", "d"].map(|id| crash_count(&sim, id)), [1, 1, 1, 0]);
    // The one that was tried now has the highest crash count, and goes last.
    store.dies_while(&[a]);
    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.notes()[6..], ["b", "d"]);
    gate.open(Err(Failure::application("no")));
    sim.settle();
    assert_eq!(world.notes()[8..], ["c", "a"], "an attempt that failed has killed no process, and the next is tried");
    sim.advance(secs(0));
    assert_eq!(["a", "b", "c", "d"].map(|id| crash_count(&sim, id)), [0, 0, 0, 0]);
    gate.open(Ok(payload("done")));
    for id in ["a", "b", "c", "d"] {
        assert_eq!(sim.result(id), completed("done"));
        assert_eq!(rows(&sim, id), NO_ROWS);
    }
}

/// One that polls for ever kept all others waiting for ever, in every queue.
#[test]
fn attempt_on_probation_delays_the_others_for_a_minute_at_most() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    for id in ["a", "b", "c"] {
        sim.start("one", id, id).unwrap();
    }
    sim.settle();
    store.dies_while(&["a", "b", "c"].map(|id| task(&sim, id)));
    let sim = sim.restart();
    for tried in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        sim.settle();
        sim.advance(secs(59));
        assert_eq!(world.notes()[3..], *tried, "for nearly a minute");
        sim.advance(secs(1));
    }
    assert_eq!(["a", "b", "c"].map(|id| crash_count(&sim, id)), [1, 1, 1], "no attempt has ended");
    gate.open(Err(Failure::application("no")));
    sim.settle();
    assert_eq!(["a", "b", "c"].map(|id| crash_count(&sim, id)), [0, 0, 0]);
}

#[test]
fn attempt_left_to_external_completion_does_not_count_as_a_crash() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let sim = Simulation::over(store.clone(), work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.start("one", "b", "b").unwrap();
    sim.settle();
    store.dies_while(&[task(&sim, "a"), task(&sim, "b")]);
    let leaving = without_delays()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .activity("work", |ctx, _| Err(ctx.complete_later()));
    let sim = sim.redeploy(leaving);
    sim.settle();
    assert_eq!(["a", "b"].map(|id| (state(&sim, id), crash_count(&sim, id))), [(ActivityState::External, 0); 2]);
}

/// A sim on which the process of an activity died three times.
fn quarantined(world: &World, gate: &Gate) -> (Simulation, Arc<LayeredStore<CrashedStore>>) {
    let store = CrashedStore::new();
    let mut sim = Simulation::over(store.clone(), work(world, gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    for died in 1..=3 {
        assert_eq!(world.count(), died);
        store.dies_while(&[task(&sim, "a")]);
        sim = sim.restart();
        sim.settle();
    }
    (sim, store)
}

#[test]
fn activity_that_killed_its_process_three_times_is_quarantined_with_a_reason() {
    let (world, gate) = (World::default(), Gate::default());
    let (mut sim, _store) = quarantined(&world, &gate);
    // The next process finds it so, too.
    for _ in 0..2 {
        assert_eq!(state(&sim, "a"), ActivityState::Quarantined);
        let seen = sim.engine().reader().describe(&RunId::of("a")).unwrap();
        assert_eq!(seen.pending[0].state, ActivityState::Quarantined);
        let (reason, ..) = stuck(&sim, "a");
        assert!(reason.contains("activity \"work\"") && reason.contains("died 3 times"), "{reason}");
        assert!(reason.contains("Handle::release"), "{reason}");
        sim.advance(secs(1_000));
        sim = sim.restart();
        sim.settle();
    }
    assert_eq!(world.count(), 3, "it is not tried any more");
}

#[test]
fn released_activity_is_tried_again() {
    for restarts in [false, true] {
        let (world, gate) = (World::default(), Gate::default());
        let (sim, _store) = quarantined(&world, &gate);
        gate.open(Ok(payload("fixed")));
        let released = sim.wait(sim.engine().release(&RunId::of("a")));
        assert_eq!(released, Ok(()));
        let sim = if restarts { sim.restart() } else { sim };
        assert_eq!(sim.result("a"), completed("fixed"));
        assert_eq!(world.count(), 4);
    }
}

/// The dispatch of another activity found it before the release was written, and what was written then was of an attempt gone by.
#[test]
fn released_activity_is_not_tried_before_the_release_is_durable() {
    let (world, gate) = (World::default(), Gate::default());
    let (sim, store) = quarantined(&world, &gate);
    store.hold_up();
    let id = RunId::of("a");
    let mut released = pin!(sim.engine().release(&id));
    assert_eq!(sim.try_wait(released.as_mut()), None);
    sim.start("one", "b", "b").unwrap();
    sim.settle();
    assert_eq!((state(&sim, "a"), world.notes()[3..].to_vec()), (ActivityState::Quarantined, vec!["b".to_owned()]));
    store.go_on(sim.store());
    assert_eq!(sim.wait(released), Ok(()));
    sim.settle();
    assert_eq!((state(&sim, "a"), crash_count(&sim, "a")), (ActivityState::Running, 0));
    gate.open(Ok(payload("fixed")));
    assert_eq!((sim.result("a"), rows(&sim, "a")), (completed("fixed"), NO_ROWS));
    assert_eq!(world.notes()[3..], ["b", "a"]);
}

/// Memory follows the store, whether or not the caller is there to hear of it.
#[test]
fn release_whose_caller_goes_away_is_carried_out() {
    let (world, gate) = (World::default(), Gate::default());
    let (sim, store) = quarantined(&world, &gate);
    gate.open(Ok(payload("fixed")));
    store.hold_up();
    let id = RunId::of("a");
    {
        let mut released = pin!(sim.engine().release(&id));
        assert_eq!(sim.try_wait(released.as_mut()), None);
    }
    store.go_on(sim.store());
    assert_eq!(sim.result("a"), completed("fixed"));
}

/// Its result came from outside while it was released.
#[test]
fn release_of_a_task_that_ends_meanwhile_leaves_no_rows() {
    let (world, gate) = (World::default(), Gate::default());
    let (sim, store) = quarantined(&world, &gate);
    store.hold_up();
    let id = RunId::of("a");
    let mut released = pin!(sim.engine().release(&id));
    assert_eq!(sim.try_wait(released.as_mut()), None);
    let activity = describe(&sim, "a").pending[0].id.clone();
    sim.wait(sim.engine().complete_activity(&id, activity, Ok(payload("by hand")))).unwrap();
    assert_eq!(sim.result("a"), completed("by hand"));
    store.go_on(sim.store());
    assert_eq!((sim.wait(released), rows(&sim, "a")), (Ok(()), NO_ROWS));
    assert_eq!(world.count(), 3);
}

#[test]
fn release_of_a_run_that_is_neither_quarantined_nor_delayed_is_refused() {
    let (world, gate) = (World::default(), Gate::default());
    let sim = Simulation::new(work(&world, &gate));
    sim.start("one", "a", "a").unwrap();
    sim.settle();
    let refused = sim.wait(sim.engine().release(&RunId::of("a")));
    assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{refused:?}");
}

#[test]
fn quarantined_activity_can_be_completed_by_token_and_ends_with_its_run() {
    let (world, gate) = (World::default(), Gate::default());
    let (sim, _store) = quarantined(&world, &gate);
    let id = describe(&sim, "a").pending[0].id.clone();
    sim.wait(sim.engine().complete_activity(&RunId::of("a"), id, Ok(payload("by hand")))).unwrap();
    assert_eq!(sim.result("a"), completed("by hand"));
    let (sim, _store) = quarantined(&World::default(), &gate);
    sim.wait(sim.engine().terminate(&RunId::of("a"), "enough")).unwrap();
    sim.settle();
    assert_eq!(rows(&sim, "a"), NO_ROWS);
}

/// A run that goes on with something else still says what it waits for.
#[test]
fn a_run_that_goes_on_beside_its_quarantined_activity_still_says_so() {
    let (world, gate, store) = (World::default(), Gate::default(), CrashedStore::new());
    let options = work(&world, &gate).workflow("two", |ctx: Ctx, input| async move {
        let call = ctx.activity("work", input);
        ctx.next_signal("go").await?;
        call.await
    });
    let mut sim = Simulation::over(store.clone(), options);
    sim.start("two", "a", "a").unwrap();
    sim.settle();
    for _ in 0..3 {
        store.dies_while(&[task(&sim, "a")]);
        sim = sim.restart();
        sim.settle();
    }
    crate::kit::signal(&sim, "a", "go", "");
    sim.settle();
    assert_eq!(describe(&sim, "a").turns, 2);
    assert!(stuck(&sim, "a").0.contains("quarantined"));
}
