//! Activities whose process died while they were tried. Runs are in `trials.rs`.

use std::pin::pin;
use std::sync::Arc;

use dacapo_core::{Ctx, Failure};
use dacapo_engine::{ActivityState, EngineError, Options, RunId};
use dacapo_store::Doing;
use dacapo_testkit::{Fronted, Stage};

use crate::haunted::Haunted;
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

fn task(stage: &Stage, id: &'static str) -> Doing {
    Doing::Attempt(stage.store().tasks_of(describe(stage, id).run).unwrap()[0].no)
}

fn strikes(stage: &Stage, id: &'static str) -> u32 {
    stage.store().tasks_of(describe(stage, id).run).unwrap()[0].strikes
}

fn state(stage: &Stage, id: &'static str) -> ActivityState {
    describe(stage, id).pending[0].state
}

#[test]
fn what_is_tried_is_noted_until_its_code_has_ended() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let (begun, ended) = store.noted();
    assert_eq!((begun.last(), ended), (Some(&task(&stage, "a")), begun.len() - 1));
    gate.open(Ok(payload("done")));
    assert_eq!(stage.result("a"), completed("done"));
    let (begun, ended) = store.noted();
    assert_eq!(begun.len(), ended);
}

/// Of those that ran when the process died one is tried at a time, beside all others; what ends is innocent.
#[test]
fn those_that_ran_when_the_process_died_are_tried_one_at_a_time() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    for id in ["a", "b", "c", "d"] {
        stage.start("one", id, id).unwrap();
    }
    stage.settle();
    let [a, b, c] = ["a", "b", "c"].map(|id| task(&stage, id));
    store.dies_while(&[a, b, c]);
    let stage = stage.restart();
    stage.settle();
    assert_eq!(world.notes()[4..], ["a", "d"], "one of the struck, and all others");
    assert_eq!(["a", "b", "c", "d"].map(|id| strikes(&stage, id)), [1, 1, 1, 0]);
    // The one that was tried now is the most suspect, and goes last.
    store.dies_while(&[a]);
    let stage = stage.restart();
    stage.settle();
    assert_eq!(world.notes()[6..], ["b", "d"]);
    gate.open(Err(Failure::application("no")));
    stage.settle();
    assert_eq!(world.notes()[8..], ["c", "a"], "what failed has not killed anybody, and the next is tried");
    stage.advance(secs(0));
    assert_eq!(["a", "b", "c", "d"].map(|id| strikes(&stage, id)), [0, 0, 0, 0]);
    gate.open(Ok(payload("done")));
    for id in ["a", "b", "c", "d"] {
        assert_eq!(stage.result(id), completed("done"));
        assert_eq!(rows(&stage, id), NO_ROWS);
    }
}

/// One that polls for ever kept all others waiting for ever, in every queue.
#[test]
fn one_that_is_tried_for_long_keeps_others_waiting_for_a_minute_only() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    for id in ["a", "b", "c"] {
        stage.start("one", id, id).unwrap();
    }
    stage.settle();
    store.dies_while(&["a", "b", "c"].map(|id| task(&stage, id)));
    let stage = stage.restart();
    for tried in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        stage.settle();
        stage.advance(secs(59));
        assert_eq!(world.notes()[3..], *tried, "for nearly a minute");
        stage.advance(secs(1));
    }
    assert_eq!(["a", "b", "c"].map(|id| strikes(&stage, id)), [1, 1, 1], "no attempt has ended");
    gate.open(Err(Failure::application("no")));
    stage.settle();
    assert_eq!(["a", "b", "c"].map(|id| strikes(&stage, id)), [0, 0, 0]);
}

#[test]
fn an_attempt_that_is_left_to_somebody_outside_has_killed_nobody() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let stage = Stage::over(store.clone(), work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.start("one", "b", "b").unwrap();
    stage.settle();
    store.dies_while(&[task(&stage, "a"), task(&stage, "b")]);
    let leaving = without_delays()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("work", input).await })
        .activity("work", |ctx, _| Err(ctx.complete_later()));
    let stage = stage.redeploy(leaving);
    stage.settle();
    assert_eq!(["a", "b"].map(|id| (state(&stage, id), strikes(&stage, id))), [(ActivityState::Outside, 0); 2]);
}

/// A stage on which the process of an activity died three times.
fn quarantined(world: &World, gate: &Gate) -> (Stage, Arc<Fronted<Haunted>>) {
    let store = Haunted::new();
    let mut stage = Stage::over(store.clone(), work(world, gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    for died in 1..=3 {
        assert_eq!(world.count(), died);
        store.dies_while(&[task(&stage, "a")]);
        stage = stage.restart();
        stage.settle();
    }
    (stage, store)
}

#[test]
fn what_killed_its_process_three_times_is_quarantined_and_says_so() {
    let (world, gate) = (World::default(), Gate::default());
    let (mut stage, _store) = quarantined(&world, &gate);
    // The next process finds it so, too.
    for _ in 0..2 {
        assert_eq!(state(&stage, "a"), ActivityState::Quarantined);
        let seen = stage.engine().reader().describe(&RunId::of("a")).unwrap();
        assert_eq!(seen.pending[0].state, ActivityState::Quarantined);
        let (reason, ..) = stuck(&stage, "a");
        assert!(reason.contains("activity \"work\"") && reason.contains("died 3 times"), "{reason}");
        assert!(reason.contains("Handle::release"), "{reason}");
        stage.advance(secs(1_000));
        stage = stage.restart();
        stage.settle();
    }
    assert_eq!(world.count(), 3, "it is not tried any more");
}

#[test]
fn what_is_released_is_tried_again() {
    for restarts in [false, true] {
        let (world, gate) = (World::default(), Gate::default());
        let (stage, _store) = quarantined(&world, &gate);
        gate.open(Ok(payload("mended")));
        let released = stage.wait(stage.engine().release(&RunId::of("a")));
        assert_eq!(released, Ok(()));
        let stage = if restarts { stage.restart() } else { stage };
        assert_eq!(stage.result("a"), completed("mended"));
        assert_eq!(world.count(), 4);
    }
}

/// Somebody else's dispatch found it before the release was written, and what was written then was of an attempt gone by.
#[test]
fn what_is_released_is_not_tried_before_that_is_durable() {
    let (world, gate) = (World::default(), Gate::default());
    let (stage, store) = quarantined(&world, &gate);
    store.hold_up();
    let id = RunId::of("a");
    let mut released = pin!(stage.engine().release(&id));
    assert_eq!(stage.try_wait(released.as_mut()), None);
    stage.start("one", "b", "b").unwrap();
    stage.settle();
    assert_eq!((state(&stage, "a"), world.notes()[3..].to_vec()), (ActivityState::Quarantined, vec!["b".to_owned()]));
    store.go_on(stage.store());
    assert_eq!(stage.wait(released), Ok(()));
    stage.settle();
    assert_eq!((state(&stage, "a"), strikes(&stage, "a")), (ActivityState::Running, 0));
    gate.open(Ok(payload("mended")));
    assert_eq!((stage.result("a"), rows(&stage, "a")), (completed("mended"), NO_ROWS));
    assert_eq!(world.notes()[3..], ["b", "a"]);
}

/// Memory follows the store, whether or not the caller is there to hear of it.
#[test]
fn release_whose_caller_goes_away_is_carried_out() {
    let (world, gate) = (World::default(), Gate::default());
    let (stage, store) = quarantined(&world, &gate);
    gate.open(Ok(payload("mended")));
    store.hold_up();
    let id = RunId::of("a");
    {
        let mut released = pin!(stage.engine().release(&id));
        assert_eq!(stage.try_wait(released.as_mut()), None);
    }
    store.go_on(stage.store());
    assert_eq!(stage.result("a"), completed("mended"));
}

/// Its result came from outside while it was released.
#[test]
fn what_is_gone_when_its_release_is_written_disturbs_nobody() {
    let (world, gate) = (World::default(), Gate::default());
    let (stage, store) = quarantined(&world, &gate);
    store.hold_up();
    let id = RunId::of("a");
    let mut released = pin!(stage.engine().release(&id));
    assert_eq!(stage.try_wait(released.as_mut()), None);
    let activity = describe(&stage, "a").pending[0].id.clone();
    stage.wait(stage.engine().complete_activity(&id, activity, Ok(payload("by hand")))).unwrap();
    assert_eq!(stage.result("a"), completed("by hand"));
    store.go_on(stage.store());
    assert_eq!((stage.wait(released), rows(&stage, "a")), (Ok(()), NO_ROWS));
    assert_eq!(world.count(), 3);
}

#[test]
fn only_what_is_quarantined_can_be_released() {
    let (world, gate) = (World::default(), Gate::default());
    let stage = Stage::new(work(&world, &gate));
    stage.start("one", "a", "a").unwrap();
    stage.settle();
    let refused = stage.wait(stage.engine().release(&RunId::of("a")));
    assert!(matches!(refused, Err(EngineError::BadInput(_))), "{refused:?}");
}

#[test]
fn what_is_quarantined_can_be_completed_from_outside_and_ends_with_its_run() {
    let (world, gate) = (World::default(), Gate::default());
    let (stage, _store) = quarantined(&world, &gate);
    let id = describe(&stage, "a").pending[0].id.clone();
    stage.wait(stage.engine().complete_activity(&RunId::of("a"), id, Ok(payload("by hand")))).unwrap();
    assert_eq!(stage.result("a"), completed("by hand"));
    let (stage, _store) = quarantined(&World::default(), &gate);
    stage.wait(stage.engine().terminate(&RunId::of("a"), "enough")).unwrap();
    stage.settle();
    assert_eq!(rows(&stage, "a"), NO_ROWS);
}

/// A run that goes on with something else still says what it waits for.
#[test]
fn a_run_that_goes_on_beside_its_quarantined_activity_still_says_so() {
    let (world, gate, store) = (World::default(), Gate::default(), Haunted::new());
    let options = work(&world, &gate).workflow("two", |ctx: Ctx, input| async move {
        let call = ctx.activity("work", input);
        ctx.signal("go").await?;
        call.await
    });
    let mut stage = Stage::over(store.clone(), options);
    stage.start("two", "a", "a").unwrap();
    stage.settle();
    for _ in 0..3 {
        store.dies_while(&[task(&stage, "a")]);
        stage = stage.restart();
        stage.settle();
    }
    crate::kit::signal(&stage, "a", "go", "");
    stage.settle();
    assert_eq!(describe(&stage, "a").turns, 2);
    assert!(stuck(&stage, "a").0.contains("quarantined"));
}
