//! Resetting: a run begins again from an earlier turn, as another.

use dacapo_client::Error;
use dacapo_core::{Ctx, Failure, Payload, Target};
use dacapo_engine::{ActivityState, Options, RunId, StartedAs, UpdateStage, WaitFor};
use dacapo_store::Status;
use dacapo_testkit::Simulation;

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, options, over_every_cache, over_every_cache_and_restart, payload,
    resolve, rows, secs, signal, status, text, turns, turns_of, update_of,
};

fn serving(world: &World) -> Options {
    let world = world.clone();
    options()
        .workflow("steps", |ctx: Ctx, _| async move {
            let first = ctx.activity("work", "1").await?;
            let signal = ctx.next_signal("go").await?;
            ctx.sleep(secs(10)).await?;
            let second = ctx.activity("work", "2").await?;
            Ok(payload(format!("{first} {} {second}", signal.input[0])))
        })
        .activity("work", move |_, input| {
            world.note(text(&input));
            Ok(payload(format!("{input}#{}", world.count())))
        })
}

fn reset(sim: &Simulation, turn: u64) -> Result<StartedAs, Error> {
    sim.wait(sim.engine().reset(&RunId::of("a"), turn, "try that again"))
}

#[test]
fn a_closed_run_begins_again_from_a_turn_and_signals_it_was_sent_since_come_again() {
    let world = World::default();
    over_every_cache_and_restart(
        || serving(&world),
        |sim| {
            let before = world.count();
            let first = sim.start("steps", "a", "").unwrap();
            sim.settle();
            signal(&sim, "a", "go", "on");
            let (one, two) = (before + 1, before + 2);
            assert_eq!(sim.result("a"), completed(&format!("1#{one} on 2#{two}")));
            let second = reset(&sim, 2).unwrap();
            assert!(second.fresh && second.run_id != first.run_id);
            let sim = sim.restart();
            assert_eq!(
                sim.result("a"),
                completed(&format!("1#{one} on 2#{}", two + 1)),
                "what is kept is not done again"
            );
            assert_eq!(world.count() - before, 3);
            let lines = turns(&sim, "a").lines().count();
            let of_first = RunId { workflow_id: "a".into(), run_id: Some(first.run_id.clone()) };
            assert_eq!(turns_of(&sim, &of_first).lines().count(), lines, "the first run stays as it was");
            assert_eq!(describe(&sim, "a").first_run_id, first.run_id);
            assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
            (sim, vec![])
        },
    );
}

/// The row of the new run had no snapshot until its code published again.
#[test]
fn reset_run_has_the_snapshot_that_its_kept_turns_published_last() {
    let serve = || {
        options().workflow("stages", |ctx: Ctx, _| async move {
            ctx.publish("packed");
            ctx.next_signal("go").await?;
            ctx.sleep(secs(10)).await?;
            ctx.publish("sent");
            ctx.sleep(secs(10)).await?;
            Ok(Payload::empty())
        })
    };
    over_every_cache_and_restart(serve, |sim| {
        sim.start("stages", "a", "").unwrap();
        sim.settle();
        signal(&sim, "a", "go", "");
        sim.advance(secs(11));
        assert_eq!(describe(&sim, "a").published, Some("sent".into()));
        reset(&sim, 1).unwrap();
        let sim = sim.restart();
        sim.settle();
        assert_eq!(describe(&sim, "a").published, Some("packed".into()));
        sim.advance(secs(10));
        assert_eq!(describe(&sim, "a").published, Some("sent".into()));
        (sim, vec![])
    });
}

#[test]
fn reset_terminates_an_open_run_and_moves_its_timer_and_messages_to_the_new_one() {
    let world = World::default();
    over_every_cache(
        || serving(&world),
        |sim| {
            let first = sim.start("steps", "a", "").unwrap();
            sim.settle();
            signal(sim, "a", "go", "on");
            sim.advance(secs(4));
            // The timer is of turn 2, which is kept.
            reset(sim, 3).unwrap();
            let of_first = RunId { workflow_id: "a".into(), run_id: Some(first.run_id) };
            let old = sim.engine().describe(&of_first).unwrap();
            assert_eq!(old.status, Status::Terminated);
            let said = old.result.unwrap().unwrap_err().message;
            assert_eq!(said, format!("reset to turn 3 as run {}: try that again", describe(sim, "a").run_id));
            assert_eq!(sim.result("a").0, Status::Completed);
            let times: Vec<String> =
                turns(sim, "a").lines().map(|line| line.split(" ->").next().unwrap().to_owned()).collect();
            assert_eq!(times[..3], ["0 at 0ns: start steps", "1 at 0ns: resolve #0 activity", "2 at 0ns: signal go"]);
            assert!(times[3].starts_with("3 at 4s: seed "), "{times:?}");
            assert_eq!(times[4..], ["4 at 10s: resolve #1 timer", "5 at 10s: resolve #2 activity"]);
            assert_eq!(sim.store().next_due().unwrap(), None);
            vec![]
        },
    );
}

#[test]
fn an_activity_that_is_pending_at_the_point_of_reset_is_tried_by_the_new_run() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        options()
            .workflow("slow", |ctx: Ctx, _| async move { ctx.activity("work", "").await })
            .waiting("work", move |_, _| gate.pass())
    };
    over_every_cache_and_restart(serve, |sim| {
        gate.shut();
        sim.start("slow", "a", "").unwrap();
        sim.settle();
        reset(&sim, 1).unwrap();
        sim.settle();
        let pending = describe(&sim, "a").pending;
        assert_eq!(
            pending.iter().map(|task| (task.state, task.attempt)).collect::<Vec<_>>(),
            [(ActivityState::Running, 1)]
        );
        let sim = sim.restart();
        gate.open(Ok("done".into()));
        assert_eq!(sim.result("a"), completed("done"));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec![])
    });
}

async fn asks(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let told = ctx.signal_external(Target::workflow("absent"), "news", "").await.unwrap_err().message;
    let child = ctx.child("slow", "").workflow_id("child").await?;
    let word = ctx.promise("word").await?;
    Ok(payload(format!("{told}, {child} {word}")))
}

/// What others will not say again is said again by the reset.
#[test]
fn children_and_answers_from_others_that_the_new_run_still_awaits_reach_it() {
    let serve = || {
        options().workflow("asks", asks).workflow("slow", |ctx: Ctx, _| async move {
            ctx.sleep(secs(10)).await?;
            Ok("slept".into())
        })
    };
    // The point of reset: after the signal was sent, after the child was asked for, after it had started, after it ended.
    for turn in 1..=4 {
        for wait in [5, 20] {
            over_every_cache_and_restart(serve, |sim| {
                sim.start("asks", "a", "").unwrap();
                sim.advance(secs(wait));
                let last = describe(&sim, "a").turns;
                reset(&sim, turn.min(last)).unwrap();
                let sim = sim.restart();
                sim.advance(secs(30));
                // A child that is asked for anew finds its name in use if the old one is still open.
                if status(&sim, "a") == Status::Open {
                    assert_eq!(resolve(&sim, "a", "word", Ok("given".into())), Ok(()), "turn {turn}, {wait} s");
                }
                let (_, result) = sim.result("a");
                assert_eq!(
                    result.map(|value| text(&value)).map_err(|failure| failure.to_string()),
                    Ok("there is no open run of workflow id \"absent\": check the id, or start it first, slept given"
                        .to_owned()),
                    "turn {turn}, {wait} s"
                );
                (sim, vec![])
            });
        }
    }
}

#[test]
fn refused_reset_changes_nothing() {
    let sim = Simulation::new(serving(&World::default()));
    sim.start("steps", "a", "").unwrap();
    sim.settle();
    let said = |turn| reset(&sim, turn).unwrap_err().to_string();
    for turn in [0, 3] {
        let expected = "it has turns 0 to 1, so choose 1 to 2; turns before it are kept";
        assert_eq!(said(turn), format!("the run cannot be reset to turn {turn}: {expected}"));
    }
    let absent = sim.wait(sim.engine().reset(&RunId::of("absent"), 1, "")).unwrap_err();
    assert_eq!(absent, Error::NotFound { workflow_id: "absent".into(), run_id: None });
    assert_eq!((status(&sim, "a"), describe(&sim, "a").turns), (Status::Open, 2));
    let first = describe(&sim, "a").run_id;
    sim.wait(sim.engine().terminate(&RunId::of("a"), "")).unwrap();
    sim.start("steps", "a", "").unwrap();
    let of_first = RunId { workflow_id: "a".into(), run_id: Some(first) };
    let in_use = sim.wait(sim.engine().reset(&of_first, 1, "")).unwrap_err();
    assert!(matches!(in_use, Error::WorkflowIdInUse { .. }), "{in_use}");
}

#[test]
fn a_parent_awaits_the_run_that_takes_the_place_of_its_child() {
    let world = World::default();
    let serve = || {
        serving(&world).workflow("asks", |ctx: Ctx, _| async move {
            let child = ctx.child("steps", "").workflow_id("a").await?;
            Ok(payload(text(&child).split(' ').nth(1).unwrap_or_default()))
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("asks", "parent", "").unwrap();
        sim.settle();
        reset(sim, 1).unwrap();
        sim.settle();
        signal(sim, "a", "go", "on");
        assert_eq!(sim.result("parent"), completed("on"));
        vec![]
    });
}

/// Local work is in no row of its own, so what stands for it must come along.
#[test]
fn local_work_that_is_open_at_the_point_of_reset_is_done_by_the_new_run_even_after_a_crash() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        options()
            .workflow("local", |ctx: Ctx, _| async move { ctx.local_activity("work", "").await })
            .waiting("work", move |_, _| gate.pass())
    };
    over_every_cache_and_restart(serve, |sim| {
        gate.shut();
        sim.start("local", "a", "").unwrap();
        sim.settle();
        reset(&sim, 1).unwrap();
        sim.settle();
        let sim = sim.restart();
        gate.open(Ok("done".into()));
        assert_eq!(sim.result("a"), completed("done"));
        assert_eq!((rows(&sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        (sim, vec![])
    });
}

/// The caller of an update that the new run knows nothing of waited for ever.
#[test]
fn updates_that_were_accepted_before_the_point_of_reset_go_on_and_the_others_end_with_the_old_run() {
    let serve = || {
        options().workflow("asked", |ctx: Ctx, _| async move {
            let inner = ctx.clone();
            ctx.on_update(
                "put",
                |_| Ok(()),
                move |mut update| {
                    let ctx = inner.clone();
                    async move {
                        ctx.sleep(secs(10)).await?;
                        Ok(update.input.remove(0))
                    }
                },
            );
            Ok(ctx.next_signal("end").await?.input.remove(0))
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("asked", "a", "").unwrap();
        let to = RunId::of("a");
        let ask = |id| Box::pin(sim.engine().update(&to, update_of(id, "put", id), WaitFor::Completed));
        let (mut kept, mut dropped) = (ask("kept"), ask("dropped"));
        assert_eq!(sim.try_wait(kept.as_mut()), None);
        assert_eq!(sim.try_wait(dropped.as_mut()), None);
        assert_eq!(describe(sim, "a").turns, 3);
        reset(sim, 2).unwrap();
        let Some(Ok(UpdateStage::Completed(Err(failure)))) = sim.try_wait(dropped) else { panic!("it is over") };
        assert_eq!(failure.message, "the run is terminated");
        assert_eq!(sim.try_wait(kept.as_mut()), None);
        let polled = sim.try_wait(sim.engine().update_result(&to, "kept".into(), WaitFor::Accepted));
        assert_eq!(polled, Some(Ok(UpdateStage::Accepted)), "the new run has it");
        sim.advance(secs(10));
        let answered = || Some(Ok(UpdateStage::Completed(Ok(payload("kept")))));
        assert_eq!(sim.try_wait(kept), answered());
        let asked_again =
            |id: &'static str| sim.try_wait(sim.engine().update_result(&to, id.into(), WaitFor::Completed));
        assert_eq!(asked_again("kept"), answered(), "the new run keeps the answer");
        assert!(matches!(asked_again("dropped"), Some(Ok(UpdateStage::Completed(Err(_))) | Err(_))));
        signal(sim, "a", "end", "of it");
        assert_eq!(sim.result("a"), completed("of it"));
        vec![]
    });
}

/// The new run would be open, and closed for its code.
#[test]
fn reset_that_would_keep_the_turn_which_closed_the_run_is_refused() {
    let serve = options()
        .workflow("at once", |_, _| async { Ok(payload("done")) })
        .workflow("later", |ctx: Ctx, _| async move { Ok(ctx.next_signal("go").await?.input[0].clone()) });
    let sim = Simulation::new(serve);
    sim.start("at once", "a", "").unwrap();
    sim.start("later", "b", "").unwrap();
    sim.start("later", "c", "").unwrap();
    sim.settle();
    signal(&sim, "b", "go", "x");
    sim.wait(sim.engine().terminate(&RunId::of("c"), "enough")).unwrap();
    let refused =
        |id: &'static str, turn| sim.wait(sim.engine().reset(&RunId::of(id), turn, "")).unwrap_err().to_string();
    assert!(
        refused("a", 1)
            .ends_with("turn 0 closed it and would be kept; it has no turn before that one, so start it again")
    );
    assert!(refused("b", 2).ends_with("turn 1 closed it and would be kept; choose 1 to 1"));
    sim.wait(sim.engine().reset(&RunId::of("b"), 1, "")).unwrap();
    assert_eq!(sim.result("b"), completed("x"), "the signal comes again");
    sim.wait(sim.engine().reset(&RunId::of("c"), 1, "")).expect("no turn closed a run that was terminated");
}

/// The promise of docs/deploy.md: an update that is sent again after a reset needs a new id.
#[test]
fn update_that_a_reset_dropped_has_its_old_answer_under_its_id_and_is_executed_under_another() {
    let serve = || {
        options().workflow("asked", |ctx: Ctx, _| async move {
            ctx.on_update("put", |_| Ok(()), |mut update| async move { Ok(update.input.remove(0)) });
            Ok(ctx.next_signal("end").await?.input.remove(0))
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("asked", "a", "").unwrap();
        sim.settle();
        let put = |id, value| crate::kit::update(sim, "a", id, "put", value, WaitFor::Completed);
        let answered = |value| Ok(UpdateStage::Completed(Ok(payload(value))));
        assert_eq!(put("one", "old"), answered("old"));
        reset(sim, 1).unwrap();
        assert_eq!(put("one", "new"), answered("old"));
        assert_eq!(describe(sim, "a").turns, 2, "its start and its seed");
        assert_eq!(put("two", "new"), answered("new"));
        assert_eq!(describe(sim, "a").turns, 3);
        signal(sim, "a", "end", "of it");
        assert_eq!(sim.result("a"), completed("of it"));
        vec![]
    });
}
