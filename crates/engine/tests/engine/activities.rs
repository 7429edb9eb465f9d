//! Activities: tried, tried again, timed out, heard of, let go.

use dacapo_core::{CancelType, Ctx, Failure, FailureKind, Payload, Retry, RetryState, TimeoutKind};
use dacapo_engine::{ActivityState, Options};
use dacapo_store::Status;
use dacapo_testkit::expect;

use crate::kit::{
    Gate, NO_ROWS, Serve, World, completed, describe, every_second, failed, options, over_every_cache,
    over_every_cache_and_restart, payload, rows, secs, signal, since_start, text, turns,
};

/// Plays one activity with options, and gives its result or the chain of its failure.
fn calls(set: impl Fn(dacapo_core::Activity) -> dacapo_core::Activity + Send + Sync + Clone + 'static) -> Options {
    options().workflow("calls", move |ctx: Ctx, input| {
        let set = set.clone();
        async move { set(ctx.activity("work", input)).await }
    })
}

/// Notes when each attempt began, and fails.
fn failing(world: &World) -> impl Fn(dacapo_worker::ActivityCtx, Payload) -> Result<Payload, Failure> + use<> {
    let world = world.clone();
    move |ctx, _| {
        world.note(format!("{} at {:?}", ctx.info().attempt, since_start(ctx.info().started)));
        Err(Failure::application("no luck").typed("Luck"))
    }
}

/// S4-39 C-41
#[test]
fn by_default_a_failing_activity_is_tried_three_times_more_with_growing_pauses() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || calls(|activity| activity).activity("work", failing(&noted));
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(2));
        let sim = sim.restart();
        assert_eq!(failed(&sim, "a"), (Status::Failed, "activity work failed: no luck".to_owned()));
        assert_eq!(world.notes()[before..], ["1 at 0ns", "2 at 1s", "3 at 3s", "4 at 7s"]);
        let failure = describe(&sim, "a").result.unwrap().unwrap_err();
        let FailureKind::Activity(about) = &failure.kind else { panic!("{failure:?}") };
        assert_eq!((about.activity.as_str(), about.retry), ("work", RetryState::MaximumAttemptsReached));
        assert_eq!(failure.cause().unwrap().type_name.as_deref(), Some("Luck"));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec!["a"])
    });
}

/// S2-28
#[test]
fn a_failed_activity_is_an_error_value_that_code_may_handle() {
    async fn handles(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let Err(failure) = ctx.activity("work", "").retry(Retry::none()).await else { panic!("it fails") };
        Ok(payload(format!("handled: {failure}")))
    }
    let serve = || {
        let failing = failing(&World::default());
        calls(|activity| activity.retry(Retry::none())).workflow("handles", handles).activity("work", failing)
    };
    over_every_cache(serve, |sim| {
        sim.start("handles", "a", "").unwrap();
        sim.start("calls", "b", "").unwrap();
        assert_eq!(sim.result("a"), completed("handled: activity work failed: no luck"));
        assert_eq!(failed(sim, "b"), (Status::Failed, "activity work failed: no luck".to_owned()));
        vec!["a", "b"]
    });
}

#[test]
fn failures_that_say_so_and_types_that_are_named_are_not_tried_again() {
    let world = World::default();
    let (noted, pointless) = (world.clone(), world.clone());
    let serve = move || {
        let pointless = pointless.clone();
        let picky = Retry { non_retryable: vec!["Luck".into()], ..Retry::exponential() };
        calls(move |activity| activity.retry(picky.clone()))
            .activity("work", failing(&noted))
            .workflow("pointless", |ctx: Ctx, _| async move { ctx.activity("pointless", "").await })
            .activity("pointless", move |ctx, _| {
                pointless.note(format!("pointless {}", ctx.info().attempt));
                Err(Failure::application("never").non_retryable())
            })
    };
    over_every_cache(serve, |sim| {
        let before = world.count();
        sim.start("calls", "a", "").unwrap();
        sim.start("pointless", "b", "").unwrap();
        for id in ["a", "b"] {
            let failure = sim.result(id).1.unwrap_err();
            let FailureKind::Activity(about) = &failure.kind else { panic!("{failure:?}") };
            assert_eq!(about.retry, RetryState::NonRetryableFailure);
        }
        assert_eq!(world.notes()[before..], ["1 at 0ns", "pointless 1"]);
        vec!["a", "b"]
    });
}

/// C-44: a panic in an activity is a failure that is worth another try.
#[test]
fn an_activity_that_panics_is_tried_again() {
    let line = line!() + 3;
    let serve = || {
        calls(|activity| activity).activity("work", |ctx, _| match ctx.info().attempt {
            1 => panic!("out of cheese"),
            attempt => Ok(payload(attempt.to_string())),
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        sim.settle();
        let pending = describe(sim, "a").pending;
        let seen = pending.iter().map(|task| (task.attempt, task.last_failure.as_ref().map(ToString::to_string)));
        let said = format!("the activity panicked: out of cheese, at {}:{line}", file!());
        assert_eq!(seen.collect::<Vec<_>>(), [(2, Some(said))]);
        assert_eq!(sim.result("a"), completed("2"));
        vec!["a"]
    });
}

/// S4-40 S4-5
#[test]
fn an_activity_without_a_timeout_may_take_thirty_days() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        calls(|activity| activity).waiting("work", move |_, _| gate.pass())
    };
    over_every_cache(serve, |sim| {
        gate.shut();
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(30 * 86_400));
        assert_eq!(describe(sim, "a").pending[0].state, ActivityState::Running);
        gate.open(Ok("late".into()));
        assert_eq!(sim.result("a"), completed("late"));
        vec!["a"]
    });
}

/// S4-40
#[test]
fn an_attempt_that_takes_too_long_is_given_up_and_tried_again() {
    let world = World::default();
    let noted = world.clone();
    let serve =
        move || {
            let world = noted.clone();
            calls(|activity| activity.start_to_close(std::time::Duration::from_millis(100)).retry(every_second(2)))
                .waiting("work", move |ctx, _| {
                    let world = world.clone();
                    async move {
                        world.note(format!("{} at {:?}", ctx.info().attempt, since_start(ctx.info().started)));
                        std::future::pending().await
                    }
                })
        };
    over_every_cache(serve, |sim| {
        let before = world.count();
        sim.start("calls", "a", "").unwrap();
        let failure = sim.result("a").1.unwrap_err();
        assert_eq!(world.notes()[before..], ["1 at 0ns", "2 at 1.1s"]);
        let FailureKind::Activity(about) = &failure.kind else { panic!("{failure:?}") };
        assert_eq!(about.retry, RetryState::MaximumAttemptsReached);
        let cause = failure.cause().unwrap();
        assert_eq!(cause.kind, FailureKind::Timeout(TimeoutKind::StartToClose));
        assert_eq!(cause.message, "the attempt took too long (start-to-close timeout)");
        assert_eq!(since_start(describe(sim, "a").closed.unwrap()), std::time::Duration::from_millis(1_200));
        vec!["a"]
    });
}

#[test]
fn all_attempts_together_may_take_so_long_and_the_last_failure_is_the_cause() {
    let serve = || {
        calls(|activity| activity.schedule_to_close(secs(10)).retry(Retry { attempts: 0, ..Retry::exponential() }))
            .activity("work", failing(&World::default()))
    };
    over_every_cache_and_restart(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(4));
        let sim = sim.restart();
        let failure = sim.result("a").1.unwrap_err();
        let FailureKind::Activity(about) = &failure.kind else { panic!("{failure:?}") };
        // The fourth attempt fails after seven seconds, and the next would come after fifteen.
        assert_eq!(about.retry, RetryState::Timeout);
        assert_eq!(failure.to_string(), "activity work failed: no luck");
        assert_eq!(since_start(describe(&sim, "a").closed.unwrap()), secs(7));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec!["a"])
    });
}

#[test]
fn an_attempt_that_runs_when_the_time_of_all_is_over_is_given_up() {
    let serve =
        || calls(|activity| activity.schedule_to_close(secs(10))).waiting("work", |_, _| std::future::pending());
    over_every_cache_and_restart(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(4));
        let sim = sim.restart();
        let failure = sim.result("a").1.unwrap_err();
        assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(TimeoutKind::ScheduleToClose));
        assert_eq!(since_start(describe(&sim, "a").closed.unwrap()), secs(10));
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec!["a"])
    });
}

#[test]
fn activity_that_is_not_begun_before_schedule_to_start_fails() {
    let serve = || {
        let mut options = calls(|activity| activity.schedule_to_start(secs(10)))
            .workflow("blocks", |ctx: Ctx, _| async move { ctx.activity("block", "").await })
            .waiting("block", |_, _| std::future::pending())
            .activity("work", |_, _| Ok("never".into()));
        options.queue("default").max_concurrent_activities = 1;
        options
    };
    over_every_cache(serve, |sim| {
        sim.start("blocks", "a", "").unwrap();
        sim.start("calls", "b", "").unwrap();
        let failure = sim.result("b").1.unwrap_err();
        assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(TimeoutKind::ScheduleToStart));
        assert_eq!(failure.cause().unwrap().message, "no attempt began in time (schedule-to-start timeout)");
        assert_eq!(since_start(describe(sim, "b").closed.unwrap()), secs(10));
        assert_eq!(rows(sim, "b"), NO_ROWS);
        vec!["a", "b"]
    });
}

/// S4-21 C-34
#[test]
fn a_detached_activity_is_done_after_its_run_completed_and_one_that_was_dropped_is_not() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || {
        let world = noted.clone();
        options()
            .workflow("leaves", |ctx: Ctx, _| async move {
                ctx.activity("work", "detached").detach();
                drop(ctx.activity("work", "dropped"));
                ctx.activity("work", "abandoned").cancel_type(CancelType::Abandon).detach();
                Ok("left".into())
            })
            .activity("work", move |ctx, input| match ctx.info().attempt {
                1 => Err(Failure::application("once more")),
                _ => {
                    world.note(text(&input));
                    Ok(input)
                }
            })
    };
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        sim.start("leaves", "a", "").unwrap();
        sim.settle();
        assert_eq!(rows(&sim, "a"), (2, 0, 0), "what was let go is stored with the end of its run");
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("left"));
        assert_eq!(world.notes()[before..], ["detached", "abandoned"]);
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        (sim, vec!["a"])
    });
}

/// S4-23
#[test]
fn commands_before_a_failure_are_committed_with_it() {
    let world = World::default();
    let noted = world.clone();
    let serve = move || {
        let world = noted.clone();
        options()
            .workflow("fails", |ctx: Ctx, _| async move {
                ctx.activity("work", "detached").detach();
                ctx.set_state("seen", "1");
                Err(Failure::application("on purpose"))
            })
            .activity("work", move |_, input| {
                world.note(text(&input));
                Ok(input)
            })
    };
    over_every_cache(serve, |sim| {
        let before = world.count();
        sim.start("fails", "a", "").unwrap();
        assert_eq!(failed(sim, "a"), (Status::Failed, "on purpose".to_owned()));
        let expected = expect![[r#"
            0 at 0ns: start fails -> activity work, state seen = 1, fail on purpose
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        assert_eq!(world.notes()[before..], ["detached"]);
        vec!["a"]
    });
}

/// A signal while an activity that the workflow does not await is pending must not disturb it.
#[test]
fn the_result_of_a_detached_activity_is_taken_by_a_turn_of_its_own() {
    let serve = || {
        options()
            .workflow("goes on", |ctx: Ctx, _| async move {
                ctx.activity("work", "").detach();
                ctx.next_signal("go").await?;
                Ok("done".into())
            })
            .activity("work", |_, _| Ok("dropped".into()))
    };
    over_every_cache(serve, |sim| {
        sim.start("goes on", "a", "").unwrap();
        sim.settle();
        assert_eq!(rows(sim, "a"), NO_ROWS);
        signal(sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("done"));
        vec!["a"]
    });
}
