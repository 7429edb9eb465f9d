//! Results that come after a timeout of their attempt was due.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dacapo_client::Error;
use dacapo_core::{Ctx, FailureKind, Retry, TimeoutKind};
use dacapo_engine::Options;
use dacapo_testkit::Simulation;

use crate::kit::{Gate, Serve, every_second, options, payload, secs};

fn calling(gate: &Gate, set: fn(dacapo_core::Activity) -> dacapo_core::Activity) -> Options {
    let gate = gate.clone();
    options()
        .workflow("calls", move |ctx: Ctx, _| async move {
            set(ctx.activity("work", "").retry(Retry { attempts: 1, ..every_second(1) })).await
        })
        .waiting("work", move |_, _| gate.pass())
}

/// The engine was busy when the timeout was due: the result came first, and was accepted.
#[test]
fn result_that_comes_after_its_timeout_was_due_is_not_accepted() {
    type SetTimeout = fn(dacapo_core::Activity) -> dacapo_core::Activity;
    let timeouts: [(SetTimeout, TimeoutKind); 3] = [
        (|call| call.start_to_close(secs(5)), TimeoutKind::StartToClose),
        (|call| call.heartbeat(secs(5)), TimeoutKind::Heartbeat),
        (|call| call.schedule_to_close(secs(5)), TimeoutKind::ScheduleToClose),
    ];
    for (set, kind) in timeouts {
        let gate = Gate::default();
        let sim = Simulation::new(calling(&gate, set));
        sim.start("calls", "a", "").unwrap();
        sim.settle();
        // Time passes and nothing fires: the thread of the clock does not get to run.
        sim.pass_unnoticed(secs(5));
        gate.open(Ok(payload("too late")));
        let failure = sim.result("a").1.unwrap_err();
        assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(kind));
    }
}

#[test]
fn result_that_comes_just_before_its_timeout_is_accepted() {
    let gate = Gate::default();
    let sim = Simulation::new(calling(&gate, |call| {
        call.start_to_close(secs(5)).heartbeat(secs(5)).schedule_to_close(secs(5))
    }));
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    sim.pass_unnoticed(std::time::Duration::from_millis(4_999));
    gate.open(Ok(payload("in time")));
    assert_eq!(sim.result("a"), crate::kit::completed("in time"));
}

#[test]
fn completion_by_token_after_the_timeout_was_due_is_refused_by_name() {
    let tokens: Arc<Mutex<BTreeMap<u32, String>>> = Arc::default();
    let kept = tokens.clone();
    let serve = options()
        .workflow("calls", |ctx: Ctx, _| async move {
            ctx.activity("work", "").start_to_close(secs(5)).retry(Retry { attempts: 1, ..every_second(1) }).await
        })
        .activity("work", move |ctx, _| {
            kept.lock().unwrap().insert(ctx.info().attempt, ctx.completion_token().to_string());
            Err(ctx.complete_later())
        });
    let sim = Simulation::new(serve);
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    sim.pass_unnoticed(secs(5));
    let token = tokens.lock().unwrap()[&1].clone();
    let completed = sim.wait(sim.engine().complete(&token, Ok(payload("too late"))));
    assert!(matches!(completed, Err(Error::AttemptTimedOut { attempt: 1, .. })), "{completed:?}");
    let failure = sim.result("a").1.unwrap_err();
    assert_eq!(failure.cause().unwrap().kind, FailureKind::Timeout(TimeoutKind::StartToClose));
}
