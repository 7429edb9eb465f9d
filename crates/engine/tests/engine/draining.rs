//! Shutting down with manners, at exact times.

use std::time::Duration;

use dacapo_core::{Ctx, Payload};
use dacapo_engine::{EngineError, NewStart, Options, RunId, ShutdownReport};
use dacapo_testkit::Stage;
use dacapo_worker::ActivityCtx;

use crate::kit::{Gate, Serve, World, completed, describe, options, payload, secs, status, text};

const GRACE: Duration = Duration::from_secs(10);
const FORCE: Duration = Duration::from_secs(5);

/// One activity that waits at a gate, and ends when it is asked to stop unless it is deaf.
fn gated(gate: &Gate, world: &World, deaf: bool) -> Options {
    let (gate, world) = (gate.clone(), world.clone());
    options()
        .workflow("one", |ctx: Ctx, input: Payload| async move {
            let first = ctx.activity("work", input).await?;
            ctx.activity("after", first).await
        })
        .waiting("work", move |ctx: ActivityCtx, _| {
            world.note(format!("attempt {}", ctx.info().attempt));
            let (pass, world) = (gate.pass(), world.clone());
            async move {
                let mut pass = std::pin::pin!(pass);
                std::future::poll_fn(move |cx| {
                    if let (Some(asked), false) = (ctx.cancellation(), deaf) {
                        world.note(asked.to_string());
                        return std::task::Poll::Ready(Err(asked.into()));
                    }
                    pass.as_mut().poll(cx)
                })
                .await
            }
        })
        .activity("after", |_, input| Ok(payload(format!("{} and after", text(&input)))))
}

/// Begins a shutdown, lets this much time pass, and gives the report, if it is there by then.
fn after(
    stage: &Stage,
    report: &mut (impl Future<Output = ShutdownReport> + Unpin),
    time: Duration,
) -> Option<ShutdownReport> {
    stage.advance(time);
    stage.try_wait(report)
}

/// S3-46, S3-35
#[test]
fn what_ends_within_the_grace_period_is_recorded_and_nothing_new_begins() {
    let (gate, world) = (Gate::default(), World::default());
    let stage = Stage::new(gated(&gate, &world, false));
    stage.start("one", "a", "").unwrap();
    stage.settle();
    let mut report = Box::pin(stage.engine().shut_down());
    let refused = stage.wait(stage.engine().start(NewStart {
        workflow: "one".into(),
        workflow_id: "b".into(),
        ..NewStart::default()
    }));
    assert_eq!(refused, Err(EngineError::ShutDown));
    assert_eq!(after(&stage, &mut report, secs(8)), None);
    gate.open(Ok(payload("done")));
    let report = after(&stage, &mut report, Duration::from_millis(1)).expect("nothing runs any more");
    assert_eq!((report.asked_to_stop, report.cut_off.len()), (0, 0));
    assert!(report.took < secs(9), "{report:?}");
    assert_eq!(stage.wait(stage.engine().result(&RunId::of("a"))), Err(EngineError::ShutDown));

    let stage = stage.restart();
    assert_eq!(stage.result("a"), completed("done and after"));
    assert_eq!(world.notes(), ["attempt 1"], "what was recorded is not tried again");
}

/// S3-46, S3-16
#[test]
fn what_takes_longer_is_asked_to_stop_and_tried_again_by_the_next_process_at_once() {
    let (gate, world) = (Gate::default(), World::default());
    let stage = Stage::new(gated(&gate, &world, false));
    stage.start("one", "a", "").unwrap();
    stage.settle();
    let mut report = Box::pin(stage.engine().shut_down());
    assert_eq!(after(&stage, &mut report, Duration::from_millis(9_999)), None);
    assert_eq!(world.notes(), ["attempt 1"]);
    let report = after(&stage, &mut report, Duration::from_millis(1)).expect("it stopped when it was asked to");
    assert_eq!(report, ShutdownReport { took: GRACE, asked_to_stop: 1, ..ShutdownReport::default() });
    assert_eq!(world.notes(), ["attempt 1", "cancelled: the worker shuts down"]);

    let stage = stage.restart();
    stage.settle();
    assert_eq!(world.notes().last().unwrap(), "attempt 1", "no attempt was used up");
    assert_eq!(describe(&stage, "a").pending[0].last_failure, None);
    gate.open(Ok(payload("done")));
    assert_eq!(stage.result("a"), completed("done and after"));
}

/// S3-47, T-13
#[test]
fn what_does_not_stop_is_left_behind_after_the_force_timeout_and_named() {
    let (gate, world) = (Gate::default(), World::default());
    let stage = Stage::new(gated(&gate, &world, true));
    stage.start("one", "a", "").unwrap();
    stage.settle();
    let mut report = Box::pin(stage.engine().shut_down());
    assert_eq!(after(&stage, &mut report, Duration::from_millis(14_999)), None);
    let report = after(&stage, &mut report, Duration::from_millis(1)).expect("the force timeout is over");
    assert_eq!((report.took, report.asked_to_stop), (GRACE + FORCE, 1));
    assert_eq!(report.cut_off.iter().map(|task| task.activity.as_str()).collect::<Vec<_>>(), ["work"]);
    let stage = stage.restart();
    gate.open(Ok(payload("done")));
    assert_eq!(stage.result("a"), completed("done and after"));
}

#[test]
fn an_engine_with_nothing_to_do_stops_at_once() {
    let stage = Stage::new(gated(&Gate::default(), &World::default(), false));
    let report = stage.wait(stage.engine().shut_down());
    assert_eq!(report, ShutdownReport::default());
    let again = stage.wait(stage.engine().shut_down());
    assert_eq!(again, ShutdownReport::default(), "whoever comes second waits for nothing");
    let stage = stage.restart();
    stage.start("one", "a", "").unwrap();
    assert!(status(&stage, "a").is_open());
}
