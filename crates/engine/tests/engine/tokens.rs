//! Attempts that somebody outside completes by a token.

use dacapo_core::{CancelType, Ctx, Failure, FailureKind};
use dacapo_engine::{ActivityState, EngineError, Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::Stage;
use dacapo_worker::TokenError;

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, every_second, failed, options, over_every_cache_and_restart, payload,
    rows, secs, signal, text,
};

/// One activity that leaves its token in the world, and is completed by whoever finds it.
fn leaving(world: &World) -> Options {
    let tokens = world.clone();
    options()
        .workflow("one", |ctx: Ctx, input| async move {
            let call = ctx.activity("ask", input).retry(every_second(3));
            call.start_to_close(secs(100)).heartbeat(secs(30)).await
        })
        .workflow("cancelled", |ctx: Ctx, input| async move {
            let how = match text(&input).as_str() {
                "waits" => CancelType::WaitCompleted,
                _ => CancelType::TryCancel,
            };
            let (call, handle) = ctx.cancellable(ctx.activity("ask", input).cancel_type(how));
            let call = ctx.launch(async move { Ok(call.await) });
            ctx.signal("stop").await?;
            handle.cancel("");
            call.await?
        })
        .activity("ask", move |ctx, _| {
            tokens.note(ctx.completion_token());
            Err(ctx.complete_later())
        })
}

fn complete(stage: &Stage, token: &str, result: Result<&str, Failure>) -> Result<(), EngineError> {
    stage.wait(stage.engine().complete(token, result.map(payload)))
}

fn heartbeat(stage: &Stage, token: &str) -> Result<Option<String>, EngineError> {
    let heard = stage.wait(stage.engine().heartbeat(token, payload("half")));
    heard.map(|cancelled| cancelled.map(|cancelled| cancelled.reason))
}

#[track_caller]
fn state(stage: &Stage) -> (ActivityState, u32) {
    let pending = &describe(stage, "a").pending;
    assert_eq!(pending.len(), 1);
    (pending[0].state, pending[0].attempt)
}

#[test]
fn an_activity_is_left_to_somebody_outside_and_completed_by_its_token() {
    for restarts in [false, true] {
        let world = World::default();
        let stage = Stage::new(leaving(&world));
        stage.start("one", "a", "").unwrap();
        stage.settle();
        assert_eq!(state(&stage), (ActivityState::Outside, 1));
        assert_eq!(state(&stage).0.to_string(), "waits to be completed by its token");
        let stage = if restarts { stage.restart() } else { stage };
        stage.settle();
        assert_eq!(stage.engine().reader().describe(&RunId::of("a")).unwrap().pending[0].state, ActivityState::Outside);
        assert_eq!(state(&stage), (ActivityState::Outside, 1));
        complete(&stage, &world.notes()[0], Ok("at last")).unwrap();
        // It is durable when it is answered.
        let stage = stage.restart();
        assert_eq!(stage.result("a"), completed("at last"));
        assert_eq!(world.count(), 1, "it was not made again");
        assert_eq!(rows(&stage, "a"), NO_ROWS);
        let again = complete(&stage, &world.notes()[0], Ok("again"));
        assert_eq!(again, Err(EngineError::Closed { workflow_id: "a".into(), status: Status::Completed }));
    }
}

#[test]
fn what_somebody_outside_does_is_the_same_for_every_cache() {
    let world = World::default();
    over_every_cache_and_restart(
        || leaving(&world),
        |stage| {
            stage.start("one", "a", "").unwrap();
            stage.settle();
            let stage = stage.restart();
            let token = world.notes().pop().unwrap();
            complete(&stage, &token, Err(Failure::application("not yet"))).unwrap();
            stage.advance(secs(2));
            complete(&stage, &world.notes().pop().unwrap(), Ok("at last")).unwrap();
            assert_eq!(stage.result("a"), completed("at last"));
            (stage, vec!["a"])
        },
    );
}

#[test]
fn an_attempt_outside_takes_no_place() {
    let world = World::default();
    let mut one_place = leaving(&world);
    one_place.queues.values_mut().for_each(|values| values.max_concurrent_activities = 1);
    let stage = Stage::new(one_place);
    for id in ["a", "b", "c"] {
        stage.start("one", id, "").unwrap();
    }
    stage.settle();
    assert_eq!(world.count(), 3);
}

#[test]
fn an_attempt_outside_that_takes_too_long_is_followed_by_another() {
    for restarts in [false, true] {
        let world = World::default();
        let stage = Stage::new(leaving(&world));
        stage.start("one", "a", "").unwrap();
        stage.settle();
        let begun = stage.now();
        for _ in 0..4 {
            stage.advance(secs(20));
            assert_eq!(heartbeat(&stage, &world.notes()[0]), Ok(None));
        }
        let stage = if restarts { stage.restart() } else { stage };
        stage.advance(secs(19));
        assert_eq!((state(&stage), stage.now().since(begun)), ((ActivityState::Outside, 1), secs(99)));
        stage.advance(secs(2));
        assert_eq!(state(&stage), (ActivityState::Outside, 2), "its time counts from its beginning");
        let pending = describe(&stage, "a").pending.remove(0);
        assert_eq!(pending.details.map(|details| text(&details)).as_deref(), Some("half"));
        assert!(pending.last_failure.unwrap().is_timeout());
        let old = complete(&stage, &world.notes()[0], Ok("too late")).unwrap_err();
        assert!(matches!(old, EngineError::OldToken { attempt: 1, current: 2, .. }), "{old}");
        assert_eq!(heartbeat(&stage, &world.notes()[0]), Err(old));
        complete(&stage, &world.notes()[1], Ok("in time")).unwrap();
        assert_eq!(stage.result("a"), completed("in time"));
    }
}

#[test]
fn an_attempt_outside_that_is_silent_for_too_long_is_followed_by_another_until_all_are_used() {
    let world = World::default();
    let stage = Stage::new(leaving(&world));
    stage.start("one", "a", "").unwrap();
    stage.advance(secs(31));
    assert_eq!(state(&stage), (ActivityState::Outside, 2));
    // A process that nobody could report to does not count as silence.
    let stage = stage.restart();
    stage.advance(secs(29));
    assert_eq!(state(&stage), (ActivityState::Outside, 2));
    let (status, words) = failed(&stage, "a");
    assert_eq!(status, Status::Failed);
    assert!(words.contains("silent for too long"), "{words}");
    assert_eq!(world.count(), 3);
}

#[test]
fn a_failure_from_outside_is_judged_by_the_retry_policy() {
    let world = World::default();
    let stage = Stage::new(leaving(&world));
    stage.start("one", "a", "").unwrap();
    stage.settle();
    complete(&stage, &world.notes()[0], Err(Failure::application("busy"))).unwrap();
    assert_eq!(state(&stage), (ActivityState::Waiting, 2));
    // The note is durable when it is answered.
    let stage = stage.restart();
    stage.advance(secs(1));
    assert_eq!((state(&stage), world.count()), ((ActivityState::Outside, 2), 2));
    complete(&stage, &world.notes()[1], Err(Failure::application("never").not_retryable())).unwrap();
    assert_eq!(failed(&stage, "a"), (Status::Failed, "activity ask failed: never".to_owned()));
}

/// A token is good from the attempt's beginning on: whoever is called may be faster than the caller.
#[test]
fn an_attempt_that_runs_is_given_up_when_somebody_outside_ends_it() {
    let world = World::default();
    let tokens = world.clone();
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("ask", input).retry(every_second(3)).await })
        .waiting("ask", move |ctx, _| {
            tokens.note(ctx.completion_token());
            std::future::pending()
        });
    let stage = Stage::new(options);
    stage.start("one", "a", "").unwrap();
    stage.settle();
    complete(&stage, &world.notes()[0], Err(Failure::application("busy"))).unwrap();
    stage.advance(secs(1));
    assert_eq!((state(&stage), world.count()), ((ActivityState::Running, 2), 2));
    complete(&stage, &world.notes()[1], Ok("done")).unwrap();
    assert_eq!(stage.result("a"), completed("done"));
}

#[test]
fn texts_that_are_no_token_of_anybody_are_refused() {
    let world = World::default();
    let stage = Stage::new(leaving(&world));
    stage.start("one", "a", "").unwrap();
    stage.settle();
    let token = world.notes().remove(0);
    assert_eq!(complete(&stage, "hello", Ok("")), Err(TokenError::Foreign.into()));
    assert_eq!(complete(&stage, &token[..token.len() - 1], Ok("")), Err(TokenError::Damaged.into()));
    assert_eq!(heartbeat(&stage, &token.to_uppercase()), Err(TokenError::Foreign.into()));
    let elsewhere = Stage::new(leaving(&world));
    assert!(matches!(complete(&elsewhere, &token, Ok("")), Err(EngineError::NotFound { .. })));
    assert_eq!(state(&stage), (ActivityState::Outside, 1));
}

#[test]
fn an_attempt_outside_that_is_not_wanted_is_over_at_once_or_told_by_its_heartbeat() {
    for (how, restarts) in [("", false), ("waits", false), ("waits", true)] {
        let world = World::default();
        let stage = Stage::new(leaving(&world));
        stage.start("cancelled", "a", how).unwrap();
        stage.settle();
        let token = world.notes().remove(0);
        assert_eq!(heartbeat(&stage, &token), Ok(None));
        signal(&stage, "a", "stop", "");
        stage.settle();
        if how == "waits" {
            let stage = if restarts { stage.restart() } else { stage };
            stage.settle();
            assert_eq!(heartbeat(&stage, &token), Ok(Some("the workflow no longer wants it".to_owned())));
            complete(&stage, &token, Err(Failure::new(FailureKind::Cancelled, "undone"))).unwrap();
            assert!(failed(&stage, "a").1.ends_with("undone"));
        } else {
            assert!(!describe(&stage, "a").status.is_open());
            assert!(matches!(heartbeat(&stage, &token), Err(EngineError::Closed { .. })));
        }
        assert_eq!(world.count(), 1);
    }
}

#[test]
fn an_attempt_outside_ends_with_the_time_of_all_attempts() {
    let world = World::default();
    let tokens = world.clone();
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move {
            ctx.activity("ask", input).schedule_to_close(secs(10)).schedule_to_start(secs(5)).await
        })
        .activity("ask", move |ctx, _| {
            tokens.note(ctx.completion_token());
            Err(ctx.complete_later())
        });
    let stage = Stage::new(options);
    stage.start("one", "a", "").unwrap();
    stage.settle();
    let stage = stage.restart();
    stage.advance(secs(6));
    assert_eq!(state(&stage), (ActivityState::Outside, 1));
    assert!(failed(&stage, "a").1.contains("all attempts together"));
    assert_eq!(rows(&stage, "a"), NO_ROWS);
}

#[test]
fn a_local_activity_cannot_be_left_to_somebody_outside() {
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.local_activity("ask", input).await })
        .activity("ask", move |ctx, _| Err(ctx.complete_later()));
    let stage = Stage::new(options);
    stage.start("one", "a", "").unwrap();
    assert_eq!(
        failed(&stage, "a").1,
        "local activity ask failed: a local activity cannot be completed by somebody outside: call it with `ctx.call`"
    );
}

/// What says that it is left to others and is not is a failure like any other.
#[test]
fn only_the_attempt_itself_can_leave_itself_to_others() {
    let forged = dacapo_worker::ActivityCtx::detached().complete_later();
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("ask", input).await })
        .activity("ask", move |_, _| Err(forged.clone()));
    let stage = Stage::new(options);
    stage.start("one", "a", "").unwrap();
    assert_eq!(failed(&stage, "a").0, Status::Failed);
}

#[test]
fn a_shutdown_does_not_wait_for_somebody_outside() {
    let world = World::default();
    let stage = Stage::new(leaving(&world));
    stage.start("one", "a", "").unwrap();
    stage.settle();
    let report = stage.wait(stage.engine().shut_down());
    assert_eq!((report.cut_off.len(), report.asked_to_stop), (0, 0));
    let stage = stage.restart();
    stage.settle();
    complete(&stage, &world.notes()[0], Ok("after all")).unwrap();
    assert_eq!((stage.result("a"), world.count()), (completed("after all"), 1));
}
