//! Heartbeats: how far an attempt is, and whether it still lives.

use std::time::Duration;

use dacapo_core::{CancelType, Ctx, FailureKind, Payload, TimeoutKind};
use dacapo_engine::{Options, RunId};
use dacapo_worker::ActivityCtx;

use crate::kit::{
    Gate, Serve, World, completed, describe, every_second, options, over_every_cache, over_every_cache_and_restart,
    payload, secs, since_start, text,
};

/// An activity that reports at once and then never again; later attempts give what the one before reported.
async fn reports(ctx: ActivityCtx, _: Payload) -> Result<Payload, dacapo_core::Failure> {
    match &ctx.info().details {
        Some(details) => Ok(payload(format!("{} after {}", ctx.info().attempt, text(details)))),
        None => {
            let _ = ctx.heartbeat_payload("half");
            std::future::pending().await
        }
    }
}

fn reporting(timeout: u64, attempts: u32) -> Options {
    let call = move |ctx: Ctx, _| async move {
        ctx.activity("work", "").heartbeat(secs(timeout)).retry(every_second(attempts)).await
    };
    options().workflow("calls", call).waiting("work", reports)
}

#[test]
fn an_attempt_that_falls_silent_is_given_up_and_the_next_knows_how_far_it_was() {
    over_every_cache(
        || reporting(10, 3),
        |sim| {
            sim.start("calls", "a", "").unwrap();
            assert_eq!(sim.result("a"), completed("2 after half"));
            assert_eq!(since_start(describe(sim, "a").closed.unwrap()), secs(11));
            vec!["a"]
        },
    );
}

#[test]
fn an_attempt_that_was_silent_for_too_long_fails_with_that_kind() {
    over_every_cache(
        || reporting(10, 1),
        |sim| {
            sim.start("calls", "a", "").unwrap();
            let failure = sim.result("a").1.unwrap_err();
            assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(TimeoutKind::Heartbeat));
            assert_eq!(failure.cause().unwrap().message, "the attempt was silent for too long (heartbeat timeout)");
            assert_eq!(since_start(describe(sim, "a").closed.unwrap()), secs(10));
            vec!["a"]
        },
    );
}

/// An activity that reports whatever the test noted last, each time the kit looks at it, and ends once it is told of an
/// earlier attempt.
fn echoing(beat: &World, timeout: Option<u64>) -> impl Fn() -> Options + use<> {
    let beat = beat.clone();
    move || {
        let heard = beat.clone();
        let call = move |ctx: Ctx, _| async move {
            let activity = ctx.activity("work", "");
            match timeout {
                Some(timeout) => activity.heartbeat(secs(timeout)).await,
                None => activity.await,
            }
        };
        options().workflow("calls", call).waiting("work", move |ctx: ActivityCtx, _| {
            let heard = heard.clone();
            std::future::poll_fn(move |_| {
                if let Some(details) = &ctx.info().details {
                    let seen = format!("{} after {}", ctx.info().attempt, text(details));
                    return std::task::Poll::Ready(Ok(payload(seen)));
                }
                if let Some(last) = heard.notes().last() {
                    let _ = ctx.heartbeat_payload(last.clone());
                }
                std::task::Poll::Pending
            })
        })
    }
}

fn stored(sim: &dacapo_testkit::Simulation) -> Option<String> {
    let row = sim.store().tasks_of(describe(sim, "a").run).unwrap().remove(0);
    row.details.map(|bytes| text(&dacapo_core::from_stored(&bytes).unwrap()))
}

#[test]
fn heartbeat_details_are_handed_to_the_next_attempt_after_a_restart() {
    let beat = World::default();
    over_every_cache_and_restart(echoing(&beat, Some(10)), |sim| {
        sim.start("calls", "a", "").unwrap();
        beat.note("early");
        sim.advance(secs(1));
        assert_eq!(stored(&sim).as_deref(), Some("early"), "the first report is stored at once");
        let sim = sim.restart();
        assert_eq!(sim.result("a"), completed("1 after early"));
        (sim, vec!["a"])
    });
}

/// S3-44, S3-45
#[test]
fn reports_are_stored_at_intervals_and_the_last_one_counts() {
    for (timeout, interval) in [(Some(10), 8), (None, 30), (Some(120), 60), (Some(50), 40)] {
        let beat = World::default();
        let sim = dacapo_testkit::Simulation::new(echoing(&beat, timeout)());
        sim.start("calls", "a", "").unwrap();
        beat.note("0");
        sim.settle();
        assert_eq!(stored(&sim).as_deref(), Some("0"));
        for second in 1..2 * interval {
            beat.note(second.to_string());
            sim.advance(secs(1));
            // What was noted is reported within that second, and stored at its end if the interval is over then.
            let stored_last = if second < interval { 0 } else { interval };
            assert_eq!(stored(&sim), Some(stored_last.to_string()), "{timeout:?} at {second} s");
            assert_eq!(describe(&sim, "a").pending[0].details, Some(payload(second.to_string())));
        }
    }
}

#[test]
fn an_attempt_that_reports_in_time_may_take_as_long_as_it_likes() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let call =
            |ctx: Ctx, _| async move { ctx.activity("work", "").heartbeat(secs(2)).retry(every_second(1)).await };
        let gate = shared_gate.clone();
        options().workflow("calls", call).waiting("work", move |ctx: ActivityCtx, _| {
            let mut pass = Box::pin(gate.pass());
            std::future::poll_fn(move |cx| {
                let _ = ctx.heartbeat_payload("alive");
                pass.as_mut().poll(cx)
            })
        })
    };
    over_every_cache(serve, |sim| {
        gate.shut();
        sim.start("calls", "a", "").unwrap();
        (0..40).for_each(|_| sim.advance(Duration::from_millis(500)));
        gate.open(Ok("done".into()));
        assert_eq!(sim.result("a"), completed("done"));
        assert_eq!(since_start(describe(sim, "a").closed.unwrap()), secs(20));
        vec!["a"]
    });
}

/// S3-16, C-23: an attempt that only reports its progress hears by that that it is no longer wanted.
#[test]
fn a_report_is_answered_by_the_cancellation() {
    let serve = || {
        let call = move |ctx: Ctx, _| async move {
            let activity = ctx.activity("work", "").cancel_type(CancelType::WaitCompleted);
            activity.await.or_else(|failure| Ok(payload(failure.to_string())))
        };
        options().workflow("calls", call).waiting("work", move |ctx: ActivityCtx, _| {
            std::future::poll_fn(move |_| match ctx.heartbeat_payload("alive") {
                Ok(()) => std::task::Poll::Pending,
                Err(cancelled) => std::task::Poll::Ready(Ok(payload(cancelled.to_string()))),
            })
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("calls", "a", "").unwrap();
        sim.advance(secs(1));
        sim.wait(sim.engine().cancel(&RunId::of("a"), "enough")).unwrap();
        assert_eq!(sim.result("a"), completed("the workflow no longer wants it"));
        vec!["a"]
    });
}
