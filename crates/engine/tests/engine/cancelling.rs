//! Cancelling: losers of races, activities that are no longer wanted, runs that are asked to stop.

use dacapo_client::Error;
use dacapo_core::{CancelType, Ctx, Either, Failure, Payload, Retry};
use dacapo_engine::{Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::{Simulation, expect};
use dacapo_worker::ActivityCtx;

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, failed, options, over_every_cache, over_every_cache_and_restart,
    payload, rows, secs, since_start, status, turns,
};

async fn within_ten_seconds(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    match ctx.race(ctx.activity("work", ""), ctx.sleep(secs(10))).await? {
        Either::First(value) => Ok(value),
        Either::Second(()) => Ok("too late".into()),
    }
}

fn racing(gate: &Gate) -> Options {
    let gate = gate.clone();
    options().workflow("races", within_ten_seconds).waiting("work", move |_, _| gate.pass())
}

/// S2-21 S2-23
#[test]
fn activity_that_loses_a_race_against_a_timer_has_its_late_result_dropped() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    over_every_cache(
        move || racing(&shared_gate),
        |sim| {
            gate.shut();
            sim.start("races", "a", "").unwrap();
            assert_eq!(sim.result("a"), completed("too late"));
            gate.open(Ok("late".into()));
            sim.play_out();
            let expected = expect![[r#"
                0 at 0ns: start races -> activity work, timer 10s
                1 at 10s: resolve #1 timer -> cancel #0, complete too late
            "#]];
            expected.assert_eq(&turns(sim, "a"));
            assert_eq!(rows(sim, "a"), NO_ROWS);
            vec!["a"]
        },
    );
}

/// S2-23 S4-50
#[test]
fn a_fast_activity_wins_against_a_timer_which_is_cancelled() {
    let gate = Gate::default();
    gate.open(Ok("fast".into()));
    over_every_cache(
        move || racing(&gate),
        |sim| {
            sim.start("races", "a", "").unwrap();
            assert_eq!(sim.result("a"), completed("fast"));
            assert_eq!(since_start(sim.now()), secs(0), "no unit waited for the timer");
            let expected = expect![[r#"
                0 at 0ns: start races -> activity work, timer 10s
                1 at 0ns: resolve #0 activity -> cancel #1, complete fast
            "#]];
            expected.assert_eq(&turns(sim, "a"));
            assert_eq!(rows(sim, "a"), NO_ROWS);
            vec!["a"]
        },
    );
}

/// An activity that loses a race against a timer of five seconds; it says why it was stopped, if it was told.
fn losing(cancel: CancelType, world: &World) -> Options {
    let world = world.clone();
    options()
        .workflow("loses", move |ctx: Ctx, _| async move {
            let (work, handle) = ctx.cancellable(ctx.activity("work", "").cancel_type(cancel).retry(Retry::none()));
            let work = ctx.launch(async move { Ok(work.await) });
            ctx.sleep(secs(5)).await?;
            handle.cancel("enough");
            let result = work.await?;
            ctx.sleep(secs(5)).await?;
            Ok(payload(format!("{:?}", result.map_err(|failure| failure.to_string()))))
        })
        .waiting("work", move |ctx: ActivityCtx, _| {
            let world = world.clone();
            async move {
                let cancelled = ctx.cancelled().await;
                world.note(cancelled.reason.clone());
                Ok("cleaned up".into())
            }
        })
}

/// S4-50
#[test]
fn an_activity_that_is_tried_to_cancel_fails_at_once_and_its_task_is_gone() {
    let world = World::default();
    over_every_cache(
        || losing(CancelType::TryCancel, &world),
        |sim| {
            sim.start("loses", "a", "").unwrap();
            sim.advance(secs(4));
            assert_eq!(rows(sim, "a"), (1, 1, 0));
            sim.advance(secs(1));
            assert_eq!(rows(sim, "a"), (0, 1, 0), "the task is gone, the next timer is there");
            assert_eq!(sim.result("a"), completed("Err(\"enough\")"));
            vec!["a"]
        },
    );
    assert_eq!(world.count(), 0);
}

#[test]
fn an_activity_whose_end_is_awaited_may_clean_up_and_its_result_counts() {
    let world = World::default();
    over_every_cache(
        || losing(CancelType::WaitCompleted, &world),
        |sim| {
            sim.start("loses", "a", "").unwrap();
            assert_eq!(sim.result("a"), completed("Ok(cleaned up)"));
            assert_eq!(rows(sim, "a"), NO_ROWS);
            vec!["a"]
        },
    );
    assert_eq!(world.notes(), ["the workflow no longer wants it"; 5]);
}

/// The request to stop is in the history alone: a process that comes later must heed it too.
#[test]
fn an_activity_that_was_asked_to_stop_is_asked_again_after_a_restart() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        options()
            .workflow("asks", |ctx: Ctx, _| async move {
                let activity = ctx.activity("slow", "").cancel_type(CancelType::WaitCompleted);
                let (work, handle) = ctx.cancellable(activity);
                let work = ctx.launch(async move { Ok(work.await) });
                ctx.sleep(secs(5)).await?;
                handle.cancel("enough");
                Ok(payload(format!("{:?}", work.await?)))
            })
            .waiting("slow", move |ctx: ActivityCtx, _| {
                let pass = gate.pass();
                async move {
                    ctx.cancelled().await;
                    pass.await
                }
            })
    };
    over_every_cache_and_restart(serve, |sim| {
        gate.shut();
        sim.start("asks", "a", "").unwrap();
        sim.advance(secs(6));
        let sim = sim.restart();
        gate.open(Ok("cleaned up".into()));
        assert_eq!(sim.result("a"), completed("Ok(cleaned up)"));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec!["a"])
    });
}

#[test]
fn abandoned_activity_goes_on_and_its_result_is_dropped() {
    let gate = Gate::default();
    let world = World::default();
    let (shared_gate, noted) = (gate.clone(), world.clone());
    let serve = move || {
        let (gate, world) = (shared_gate.clone(), noted.clone());
        options()
            .workflow("abandons", |ctx: Ctx, _| async move {
                let work = ctx.activity("work", "").cancel_type(CancelType::Abandon);
                ctx.race(work, ctx.sleep(secs(5))).await.ok();
                ctx.next_signal("go").await?;
                Ok("went on".into())
            })
            .waiting("work", move |_, _| {
                let (pass, world) = (gate.pass(), world.clone());
                async move {
                    let result = pass.await;
                    world.note("done");
                    result
                }
            })
    };
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        gate.shut();
        sim.start("abandons", "a", "").unwrap();
        sim.advance(secs(6));
        assert_eq!(rows(&sim, "a"), (1, 0, 0));
        gate.open(Ok("no one's".into()));
        sim.settle();
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        let sim = sim.restart();
        crate::kit::signal(&sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("went on"));
        assert_eq!(world.count() - before, 1, "what is done is not done again");
        (sim, vec!["a"])
    });
}

async fn cleans_up(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let Err(cancelled) = ctx.sleep(secs(100)).await else { return Ok("slept".into()) };
    ctx.shield(async { ctx.activity("clean", "").await }).await?;
    Err(cancelled.into())
}

#[test]
fn a_run_that_is_asked_to_cancel_cleans_up_and_ends_as_cancelled() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || {
        let world = noted.clone();
        options().workflow("cleans up", cleans_up).activity("clean", move |_, input| {
            world.note("cleaned");
            Ok(input)
        })
    };
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        sim.start("cleans up", "a", "").unwrap();
        sim.advance(secs(1));
        let sim = sim.restart();
        let cancel = |sim: &Simulation, reason: &'static str| sim.wait(sim.engine().cancel(&RunId::of("a"), reason));
        assert_eq!(cancel(&sim, "changed our mind"), Ok(()));
        assert_eq!(failed(&sim, "a"), (Status::Cancelled, "changed our mind".to_owned()));
        assert_eq!(world.count() - before, 1);
        let expected = expect![[r#"
            0 at 0ns: start cleans up -> timer 1m 40s
            1 at 1s: cancel changed our mind -> cancel #0, activity clean
            2 at 1s: resolve #1 activity -> cancelled changed our mind
        "#]];
        expected.assert_eq(&turns(&sim, "a"));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        let closed = Error::Closed { workflow_id: "a".into(), status: Status::Cancelled };
        assert_eq!(cancel(&sim, "again"), Err(closed));
        (sim, vec!["a"])
    });
}

#[test]
fn a_run_that_is_asked_to_cancel_twice_is_asked_once() {
    let serve = || {
        options().workflow("ignores", |ctx: Ctx, _| async move {
            ctx.shield(async { ctx.sleep(secs(10)).await }).await?;
            Ok("went on".into())
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("ignores", "a", "").unwrap();
        for _ in 0..2 {
            assert_eq!(sim.wait(sim.engine().cancel(&RunId::of("a"), "please")), Ok(()));
        }
        assert_eq!(sim.result("a"), completed("went on"));
        assert_eq!(describe(sim, "a").turns, 3);
        vec!["a"]
    });
}

#[test]
fn a_terminated_run_ends_at_once_and_leaves_no_rows_behind() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        options()
            .workflow("busy", |ctx: Ctx, _| async move {
                let (timer, promise) = (ctx.sleep(secs(100)), ctx.promise("never"));
                let work = ctx.activity("work", "").schedule_to_close(secs(50)).schedule_to_start(secs(20));
                let result = ctx.join([work]).await;
                drop((timer, promise, result));
                Ok("never".into())
            })
            .waiting("work", move |_, _| gate.pass())
    };
    over_every_cache(serve, |sim| {
        gate.shut();
        sim.start("busy", "a", "").unwrap();
        // The time before the first attempt is over, but an attempt runs.
        sim.advance(secs(30));
        assert_eq!(sim.wait(sim.engine().terminate(&RunId::of("a"), "enough")), Ok(()));
        assert_eq!(status(sim, "a"), Status::Terminated);
        gate.open(Ok("late".into()));
        assert_eq!(failed(sim, "a"), (Status::Terminated, "enough".to_owned()));
        assert_eq!((rows(sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        assert_eq!(describe(sim, "a").turns, 1, "its code was not asked");
        let closed = Error::Closed { workflow_id: "a".into(), status: Status::Terminated };
        assert_eq!(sim.wait(sim.engine().terminate(&RunId::of("a"), "again")), Err(closed));
        let absent = Error::NotFound { workflow_id: "absent".into(), run_id: None };
        assert_eq!(sim.wait(sim.engine().terminate(&RunId::of("absent"), "")), Err(absent));
        vec!["a"]
    });
}

/// C-34
#[test]
fn operations_of_launched_units_end_with_the_run_without_commands() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || {
        let world = noted.clone();
        options()
            .workflow("leaves", |ctx: Ctx, _| async move {
                let inner = ctx.clone();
                ctx.launch(async move {
                    let (timer, slow) = (inner.sleep(secs(100)), inner.activity("slow", ""));
                    let _ = inner.race(timer, slow).await;
                    inner.activity("never", "").await.map(drop)
                });
                ctx.sleep(secs(1)).await?;
                Ok("left".into())
            })
            .waiting("slow", |_, _| std::future::pending())
            .activity("never", move |_, input| {
                world.note("never");
                Ok(input)
            })
    };
    over_every_cache(serve, |sim| {
        sim.start("leaves", "a", "").unwrap();
        assert_eq!(sim.result("a"), completed("left"));
        let expected = expect![[r#"
            0 at 0ns: start leaves -> timer 1s, timer 1m 40s, activity slow
            1 at 1s: resolve #0 timer -> complete left
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        assert_eq!((rows(sim, "a"), sim.store().next_due().unwrap()), (NO_ROWS, None));
        assert!(describe(sim, "a").pending.is_empty());
        vec!["a"]
    });
    assert_eq!(world.count(), 0);
}
