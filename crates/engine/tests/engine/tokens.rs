//! Attempts that an external caller completes by a token.

use dacapo_client::Error;
use dacapo_core::{CancelType, Ctx, Failure, FailureKind};
use dacapo_engine::{ActivityState, Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::Simulation;
use dacapo_worker::TokenError;

use crate::kit::{
    NO_ROWS, Serve, World, completed, describe, every_second, failed, options, over_every_cache_and_restart, payload,
    rows, secs, signal, text,
};

/// One activity that leaves its token in the world, and is completed by the test.
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
            ctx.next_signal("stop").await?;
            handle.cancel("");
            call.await?
        })
        .activity("ask", move |ctx, _| {
            tokens.note(ctx.completion_token());
            Err(ctx.complete_later())
        })
}

fn complete(sim: &Simulation, token: &str, result: Result<&str, Failure>) -> Result<(), Error> {
    sim.wait(sim.engine().complete(token, result.map(payload)))
}

fn heartbeat(sim: &Simulation, token: &str) -> Result<Option<String>, Error> {
    let heard = sim.wait(sim.engine().heartbeat(token, payload("half")));
    heard.map(|cancelled| cancelled.map(|cancelled| cancelled.reason))
}

#[track_caller]
fn state(sim: &Simulation) -> (ActivityState, u32) {
    let pending = &describe(sim, "a").pending;
    assert_eq!(pending.len(), 1);
    (pending[0].state, pending[0].attempt)
}

#[test]
fn activity_left_to_external_completion_is_completed_by_its_token() {
    for restarts in [false, true] {
        let world = World::default();
        let sim = Simulation::new(leaving(&world));
        sim.start("one", "a", "").unwrap();
        sim.settle();
        assert_eq!(state(&sim), (ActivityState::External, 1));
        assert_eq!(state(&sim).0.to_string(), "waits to be completed by its token");
        let sim = if restarts { sim.restart() } else { sim };
        sim.settle();
        assert_eq!(sim.engine().reader().describe(&RunId::of("a")).unwrap().pending[0].state, ActivityState::External);
        assert_eq!(state(&sim), (ActivityState::External, 1));
        complete(&sim, &world.notes()[0], Ok("at last")).unwrap();
        // It is durable when it is answered.
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("at last"));
        assert_eq!(world.count(), 1, "it was not made again");
        assert_eq!(rows(&sim, "a"), NO_ROWS);
        let again = complete(&sim, &world.notes()[0], Ok("again"));
        assert_eq!(again, Err(Error::Closed { workflow_id: "a".into(), status: Status::Completed }));
    }
}

#[test]
fn external_completion_is_the_same_for_every_cache_size() {
    let world = World::default();
    over_every_cache_and_restart(
        || leaving(&world),
        |sim| {
            sim.start("one", "a", "").unwrap();
            sim.settle();
            let sim = sim.restart();
            let token = world.notes().pop().unwrap();
            complete(&sim, &token, Err(Failure::application("not yet"))).unwrap();
            sim.advance(secs(2));
            complete(&sim, &world.notes().pop().unwrap(), Ok("at last")).unwrap();
            assert_eq!(sim.result("a"), completed("at last"));
            (sim, vec!["a"])
        },
    );
}

#[test]
fn attempt_left_to_external_completion_takes_no_place() {
    let world = World::default();
    let mut one_place = leaving(&world);
    one_place.queues.values_mut().for_each(|values| values.max_concurrent_activities = 1);
    let sim = Simulation::new(one_place);
    for id in ["a", "b", "c"] {
        sim.start("one", id, "").unwrap();
    }
    sim.settle();
    assert_eq!(world.count(), 3);
}

#[test]
fn attempt_left_to_external_completion_times_out_and_is_retried() {
    for restarts in [false, true] {
        let world = World::default();
        let sim = Simulation::new(leaving(&world));
        sim.start("one", "a", "").unwrap();
        sim.settle();
        let begun = sim.now();
        for _ in 0..4 {
            sim.advance(secs(20));
            assert_eq!(heartbeat(&sim, &world.notes()[0]), Ok(None));
        }
        let sim = if restarts { sim.restart() } else { sim };
        sim.advance(secs(19));
        assert_eq!((state(&sim), sim.now().since(begun)), ((ActivityState::External, 1), secs(99)));
        sim.advance(secs(2));
        assert_eq!(state(&sim), (ActivityState::External, 2), "its time counts from its beginning");
        let pending = describe(&sim, "a").pending.remove(0);
        assert_eq!(pending.details.map(|details| text(&details)).as_deref(), Some("half"));
        assert!(pending.last_failure.unwrap().is_timeout());
        let old = complete(&sim, &world.notes()[0], Ok("too late")).unwrap_err();
        assert!(matches!(old, Error::StaleToken { attempt: 1, current: 2, .. }), "{old}");
        assert_eq!(heartbeat(&sim, &world.notes()[0]), Err(old));
        complete(&sim, &world.notes()[1], Ok("in time")).unwrap();
        assert_eq!(sim.result("a"), completed("in time"));
    }
}

#[test]
fn attempt_left_to_external_completion_without_heartbeats_is_retried_until_its_attempts_are_used() {
    let world = World::default();
    let sim = Simulation::new(leaving(&world));
    sim.start("one", "a", "").unwrap();
    sim.advance(secs(31));
    assert_eq!(state(&sim), (ActivityState::External, 2));
    // The time in which no process took heartbeats does not count as silence.
    let sim = sim.restart();
    sim.advance(secs(29));
    assert_eq!(state(&sim), (ActivityState::External, 2));
    let (status, words) = failed(&sim, "a");
    assert_eq!(status, Status::Failed);
    assert!(words.contains("silent for too long"), "{words}");
    assert_eq!(world.count(), 3);
}

#[test]
fn failure_given_by_token_is_retried_as_the_retry_policy_says() {
    let world = World::default();
    let sim = Simulation::new(leaving(&world));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    complete(&sim, &world.notes()[0], Err(Failure::application("busy"))).unwrap();
    assert_eq!(state(&sim), (ActivityState::Waiting, 2));
    // The note is durable when it is answered.
    let sim = sim.restart();
    sim.advance(secs(1));
    assert_eq!((state(&sim), world.count()), ((ActivityState::External, 2), 2));
    complete(&sim, &world.notes()[1], Err(Failure::application("never").non_retryable())).unwrap();
    assert_eq!(failed(&sim, "a"), (Status::Failed, "activity ask failed: never".to_owned()));
}

/// A token is good from the attempt's beginning on: the service that is called may be faster than the attempt that calls it.
#[test]
fn running_attempt_is_given_up_when_it_is_completed_externally() {
    let world = World::default();
    let tokens = world.clone();
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("ask", input).retry(every_second(3)).await })
        .waiting("ask", move |ctx, _| {
            tokens.note(ctx.completion_token());
            std::future::pending()
        });
    let sim = Simulation::new(options);
    sim.start("one", "a", "").unwrap();
    sim.settle();
    complete(&sim, &world.notes()[0], Err(Failure::application("busy"))).unwrap();
    sim.advance(secs(1));
    assert_eq!((state(&sim), world.count()), ((ActivityState::Running, 2), 2));
    complete(&sim, &world.notes()[1], Ok("done")).unwrap();
    assert_eq!(sim.result("a"), completed("done"));
}

#[test]
fn text_that_is_no_completion_token_is_refused() {
    let world = World::default();
    let sim = Simulation::new(leaving(&world));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let token = world.notes().remove(0);
    assert_eq!(complete(&sim, "hello", Ok("")), Err(Error::InvalidToken(TokenError::Foreign.to_string())));
    assert_eq!(
        complete(&sim, &token[..token.len() - 1], Ok("")),
        Err(Error::InvalidToken(TokenError::Damaged.to_string()))
    );
    assert_eq!(heartbeat(&sim, &token.to_uppercase()), Err(Error::InvalidToken(TokenError::Foreign.to_string())));
    let elsewhere = Simulation::new(leaving(&world));
    assert!(matches!(complete(&elsewhere, &token, Ok("")), Err(Error::NotFound { .. })));
    assert_eq!(state(&sim), (ActivityState::External, 1));
}

#[test]
fn cancelled_attempt_left_to_external_completion_ends_at_once_or_learns_by_its_heartbeat() {
    for (how, restarts) in [("", false), ("waits", false), ("waits", true)] {
        let world = World::default();
        let sim = Simulation::new(leaving(&world));
        sim.start("cancelled", "a", how).unwrap();
        sim.settle();
        let token = world.notes().remove(0);
        assert_eq!(heartbeat(&sim, &token), Ok(None));
        signal(&sim, "a", "stop", "");
        sim.settle();
        if how == "waits" {
            let sim = if restarts { sim.restart() } else { sim };
            sim.settle();
            assert_eq!(heartbeat(&sim, &token), Ok(Some("the workflow no longer wants it".to_owned())));
            complete(&sim, &token, Err(Failure::new(FailureKind::Cancelled, "undone"))).unwrap();
            assert!(failed(&sim, "a").1.ends_with("undone"));
        } else {
            assert!(!describe(&sim, "a").status.is_open());
            assert!(matches!(heartbeat(&sim, &token), Err(Error::Closed { .. })));
        }
        assert_eq!(world.count(), 1);
    }
}

#[test]
fn attempt_left_to_external_completion_ends_at_schedule_to_close() {
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
    let sim = Simulation::new(options);
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let sim = sim.restart();
    sim.advance(secs(6));
    assert_eq!(state(&sim), (ActivityState::External, 1));
    assert!(failed(&sim, "a").1.contains("all attempts together"));
    assert_eq!(rows(&sim, "a"), NO_ROWS);
}

#[test]
fn local_activity_cannot_be_left_to_external_completion() {
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.local_activity("ask", input).await })
        .activity("ask", move |ctx, _| Err(ctx.complete_later()));
    let sim = Simulation::new(options);
    sim.start("one", "a", "").unwrap();
    assert_eq!(
        failed(&sim, "a").1,
        "local activity ask failed: a local activity cannot be completed by its token: call it with `ctx.call`"
    );
}

/// What says that it is left to others and is not is a failure like any other.
#[test]
fn forged_external_completion_is_a_failure_like_any_other() {
    let forged = dacapo_worker::ActivityCtx::detached().complete_later();
    let options = options()
        .workflow("one", |ctx: Ctx, input| async move { ctx.activity("ask", input).await })
        .activity("ask", move |_, _| Err(forged.clone()));
    let sim = Simulation::new(options);
    sim.start("one", "a", "").unwrap();
    assert_eq!(failed(&sim, "a").0, Status::Failed);
}

#[test]
fn shutdown_does_not_wait_for_an_external_completion() {
    let world = World::default();
    let sim = Simulation::new(leaving(&world));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let report = sim.wait(sim.engine().shut_down());
    assert_eq!((report.cut_off.len(), report.asked_to_stop), (0, 0));
    let sim = sim.restart();
    sim.settle();
    complete(&sim, &world.notes()[0], Ok("after all")).unwrap();
    assert_eq!((sim.result("a"), world.count()), (completed("after all"), 1));
}
