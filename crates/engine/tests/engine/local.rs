//! Local work: local activities and closures that run beside their workflow and are recorded with their result.

use dacapo_core::{CancelType, Ctx, Failure, FailureKind, Payload, Retry, RetryState, TimeoutKind};
use dacapo_engine::Options;
use dacapo_store::Status;
use dacapo_testkit::{Moment, Simulation, expect};

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, every_second, failed, options, over_every_cache,
    over_every_cache_and_restart, payload, query, rows, secs, signal, since_start, text, turns,
};

/// A workflow that runs a closure between two other waits.
fn closing_over(world: &World) -> Options {
    let world = world.clone();
    options().workflow("runs", move |ctx: Ctx, _| {
        let world = world.clone();
        async move {
            let value = ctx
                .side_effect("draw", move || async move {
                    world.note("drawn");
                    Ok(payload(world.count().to_string()))
                })
                .await?;
            ctx.sleep(secs(60)).await?;
            ctx.next_signal("go").await?;
            Ok(value)
        }
    })
}

/// S4-28
#[test]
fn a_closure_runs_once_however_often_its_run_is_replayed() {
    let world = World::default();
    let serve = {
        let world = world.clone();
        move || closing_over(&world)
    };
    let mut before = 0;
    for cache in dacapo_testkit::CACHES {
        let mut sim = Simulation::new(serve().cache(cache));
        sim.start("runs", "a", "").unwrap();
        for _ in 0..20 {
            sim.settle();
            sim = sim.restart();
            sim.advance(secs(7));
        }
        signal(&sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed(&(before + 1).to_string()), "{cache:?}");
        assert_eq!(world.count(), before + 1, "{cache:?}");
        before = world.count();
        let expected = expect![[r#"
            0 at 0ns: start runs -> side effect draw
            1 at 0ns: resolve #0 side effect -> timer 1m
            2 at 60s: resolve #1 timer ->
            3 at 140s: signal go -> complete
        "#]];
        let seen = turns(&sim, "a").replace(&format!("complete {before}"), "complete");
        expected.assert_eq(&seen);
    }
}

/// S4-28 C-26
#[test]
fn a_closure_may_run_twice_if_the_process_dies_before_its_result_is_recorded_and_one_value_counts() {
    let world = World::default();
    let mut twice = 0;
    for moment in 0.. {
        let before = world.count();
        let sim = Simulation::new(closing_over(&world)).dying(moment);
        let _ = sim.try_wait(sim.engine().start(dacapo_engine::NewStart {
            workflow: "runs".into(),
            workflow_id: "a".into(),
            request: Some("once".into()),
            ..Default::default()
        }));
        sim.play_out();
        let died = sim.died();
        let sim = sim.restart();
        let again = sim.wait(sim.engine().start(dacapo_engine::NewStart {
            workflow: "runs".into(),
            workflow_id: "a".into(),
            request: Some("once".into()),
            ..Default::default()
        }));
        assert!(again.is_ok(), "{again:?}");
        sim.play_out();
        signal(&sim, "a", "go", "");
        let ran = world.count() - before;
        let (status, value) = sim.result("a");
        assert_eq!((status, value), completed(&world.count().to_string()), "{died:?}");
        match died {
            None => break,
            Some(Moment::AfterAttempt) => assert_eq!(ran, 2),
            Some(_) => assert!((1..=2).contains(&ran), "{died:?}: {ran}"),
        }
        twice += usize::from(ran == 2);
    }
    assert!(twice > 0);
}

fn calls(
    set: impl Fn(dacapo_core::LocalActivity) -> dacapo_core::LocalActivity + Send + Sync + Clone + 'static,
) -> Options {
    options().workflow("calls", move |ctx: Ctx, input| {
        let set = set.clone();
        async move { set(ctx.local_activity("work", input)).await }
    })
}

fn failing_until(
    world: &World,
    good: u32,
) -> impl Fn(dacapo_worker::ActivityCtx, Payload) -> Result<Payload, Failure> + use<> {
    let world = world.clone();
    move |ctx, _| {
        let info = ctx.info();
        world.note(format!("{} at {:?}", info.attempt, since_start(info.started)));
        if info.attempt >= good { Ok("good".into()) } else { Err(Failure::application("no luck").typed("Luck")) }
    }
}

#[test]
fn short_pauses_between_local_attempts_leave_no_turns() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || calls(|local| local.retry(Retry::exponential())).activity("work", failing_until(&noted, 3));
    over_every_cache(serve, |sim| {
        let before = world.count();
        sim.start("calls", "a", "").unwrap();
        assert_eq!(sim.result("a"), completed("good"));
        assert_eq!(world.notes()[before..], ["1 at 0ns", "2 at 1s", "3 at 3s"]);
        let expected = expect![[r#"
            0 at 0ns: start calls -> local activity work
            1 at 3s: resolve #0 activity -> complete good
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        vec!["a"]
    });
}

#[test]
fn long_pauses_between_local_attempts_are_timers_and_survive_a_restart() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || {
        let slow = Retry { first_pause: secs(100), max_pause: secs(1_000), ..Retry::exponential() };
        calls(move |local| local.retry(slow.clone())).activity("work", failing_until(&noted, 3))
    };
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(150));
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("good"));
        assert_eq!(world.notes()[before..], ["1 at 0ns", "2 at 100s", "3 at 300s"]);
        let expected = expect![[r#"
            0 at 0ns: start calls -> local activity work
            1 at 0ns: resolve #0 backoff of a local activity -> timer 1m 40s
            2 at 100s: resolve #1 timer -> local activity work
            3 at 100s: resolve #2 backoff of a local activity -> timer 3m 20s
            4 at 300s: resolve #3 timer -> local activity work
            5 at 300s: resolve #4 activity -> complete good
        "#]];
        expected.assert_eq(&turns(&sim, "a"));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec!["a"])
    });
}

#[test]
fn a_local_activity_that_uses_up_its_attempts_fails_with_its_last_failure() {
    let serve = || calls(|local| local.retry(every_second(2))).activity("work", failing_until(&World::default(), 9));
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        let (status, result) = sim.result("a");
        let failure = result.unwrap_err();
        assert_eq!((status, failure.to_string()), (Status::Failed, "local activity work failed: no luck".to_owned()));
        let FailureKind::Activity(about) = &failure.kind else { panic!("{failure:?}") };
        assert_eq!(about.retry, RetryState::MaximumAttemptsReached);
        vec!["a"]
    });
}

/// Types that are named as pointless are treated alike here and for activities on a queue.
#[test]
fn a_local_failure_of_a_type_that_is_not_retryable_ends_it_and_says_so() {
    let picky = Retry { non_retryable: vec!["Luck".into()], ..Retry::exponential() };
    let serve = move || {
        let picky = picky.clone();
        calls(move |local| local.retry(picky.clone())).activity("work", failing_until(&World::default(), 9))
    };
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        let failure = sim.result("a").1.unwrap_err();
        let FailureKind::Activity(about) = &failure.kind else { panic!("{failure:?}") };
        assert_eq!(about.retry, RetryState::NonRetryableFailure);
        assert_eq!(since_start(sim.now()), secs(0));
        vec!["a"]
    });
}

#[test]
fn local_work_that_takes_too_long_fails_with_that_kind() {
    let serve = || {
        calls(|local| local.start_to_close(secs(5)).retry(Retry::none())).waiting("work", |_, _| std::future::pending())
    };
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        let failure = sim.result("a").1.unwrap_err();
        assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(TimeoutKind::StartToClose));
        assert_eq!(since_start(describe(sim, "a").closed.unwrap()), secs(5));
        vec!["a"]
    });
}

#[test]
fn a_local_activity_that_is_not_served_fails_and_names_it() {
    over_every_cache(
        || calls(|local| local.retry(Retry::none())),
        |sim| {
            sim.start("calls", "a", "").unwrap();
            let (status, failure) = failed(sim, "a");
            assert_eq!(status, Status::Failed);
            assert_eq!(
                failure,
                "local activity work failed: no activity \"work\" is registered here: serve it beside the workflow \
                 that calls it"
            );
            vec!["a"]
        },
    );
}

/// A turn of nothing but local work waits for its result: both are committed in one go.
#[test]
fn many_local_steps_in_a_row_are_deferred_and_no_query_is_answered_from_an_uncommitted_turn() {
    async fn chain(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        ctx.on_query("sum", |_| Ok("asked".into()));
        ctx.next_signal("go").await?;
        let mut sum = 0;
        for number in 0..5 {
            let add = ctx.side_effect("add", move || async move { Ok(payload(number.to_string())) }).await?;
            sum += text(&add).parse::<u64>().unwrap();
        }
        Ok(payload(sum.to_string()))
    }
    over_every_cache(
        || options().workflow("chain", chain),
        |sim| {
            sim.start("chain", "a", "").unwrap();
            assert_eq!(query(sim, "a", "sum").unwrap(), "asked");
            signal(sim, "a", "go", "");
            assert_eq!(sim.result("a"), completed("10"));
            let expected = expect![[r#"
                0 at 0ns: start chain ->
                1 at 0ns: signal go -> side effect add
                2 at 0ns: resolve #0 side effect -> side effect add
                3 at 0ns: resolve #1 side effect -> side effect add
                4 at 0ns: resolve #2 side effect -> side effect add
                5 at 0ns: resolve #3 side effect -> side effect add
                6 at 0ns: resolve #4 side effect -> complete 10
            "#]];
            expected.assert_eq(&turns(sim, "a"));
            vec!["a"]
        },
    );
}

#[test]
fn a_turn_that_waits_for_slow_local_work_is_committed_after_a_tenth_of_a_second() {
    let serve = || {
        options()
            .workflow("slow", |ctx: Ctx, _| async move {
                ctx.next_signal("go").await?;
                ctx.local_activity("work", "").await
            })
            .waiting("work", |_, _| std::future::pending())
    };
    over_every_cache(serve, |sim| {
        sim.start("slow", "a", "").unwrap();
        signal(sim, "a", "go", "");
        sim.settle();
        assert_eq!((describe(sim, "a").turns, rows(sim, "a")), (1, (0, 0, 1)), "the signal is still a message");
        sim.advance(std::time::Duration::from_millis(99));
        assert_eq!(describe(sim, "a").turns, 1);
        sim.advance(std::time::Duration::from_millis(1));
        assert_eq!((describe(sim, "a").turns, rows(sim, "a")), (2, (0, 1, 0)), "a timer stands for the work");
        sim.wait(sim.engine().terminate(&dacapo_engine::RunId::of("a"), "enough")).unwrap();
        sim.settle();
        assert_eq!(rows(sim, "a"), NO_ROWS);
        vec!["a"]
    });
}

#[test]
fn local_work_that_loses_a_race_is_cancelled_and_its_result_dropped() {
    for cancel in [CancelType::TryCancel, CancelType::WaitCompleted] {
        let world = World::default();
        let noted = world.clone();
        let serve = move || {
            let world = noted.clone();
            options()
                .workflow("races", move |ctx: Ctx, _| async move {
                    let work = ctx.local_activity("work", "").cancel_type(cancel).retry(Retry::none());
                    ctx.race(work, ctx.sleep(secs(5))).await.ok();
                    ctx.sleep(secs(5)).await?;
                    Ok("raced".into())
                })
                .waiting("work", move |ctx: dacapo_worker::ActivityCtx, _| {
                    let world = world.clone();
                    async move {
                        let cancelled = ctx.cancelled().await;
                        world.note(cancelled.reason.clone());
                        Err(cancelled.into())
                    }
                })
        };
        over_every_cache(serve, |sim| {
            sim.start("races", "a", "").unwrap();
            assert_eq!(sim.result("a"), completed("raced"));
            vec!["a"]
        });
        let told = if cancel == CancelType::WaitCompleted { 5 } else { 0 };
        assert_eq!(world.count(), told, "{cancel:?}: only work that is waited for is asked");
    }
}
