//! Graceful shutdown, at exact times.

use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Ctx, Payload};
use dacapo_engine::{NewStart, Options, RunId, ShutdownReport};
use dacapo_testkit::Simulation;
use dacapo_worker::ActivityCtx;

use crate::kit::{Gate, Serve, World, completed, describe, every_second, options, payload, secs, status, text};

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
    sim: &Simulation,
    report: &mut (impl Future<Output = ShutdownReport> + Unpin),
    time: Duration,
) -> Option<ShutdownReport> {
    sim.advance(time);
    sim.try_wait(report)
}

/// S3-46, S3-35
#[test]
fn shutdown_records_work_that_ends_within_the_grace_period_and_begins_no_other() {
    let (gate, world) = (Gate::default(), World::default());
    let sim = Simulation::new(gated(&gate, &world, false));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    let refused = sim.wait(sim.engine().start(NewStart {
        workflow: "one".into(),
        workflow_id: "b".into(),
        ..NewStart::default()
    }));
    assert_eq!(refused, Err(Error::ShutDown));
    assert_eq!(after(&sim, &mut report, secs(8)), None);
    gate.open(Ok(payload("done")));
    let report = after(&sim, &mut report, Duration::from_millis(1)).expect("nothing runs any more");
    assert_eq!((report.asked_to_stop, report.cut_off.len()), (0, 0));
    assert!(report.took < secs(9), "{report:?}");
    assert_eq!(sim.wait(sim.engine().result(&RunId::of("a"))), Err(Error::ShutDown));

    let sim = sim.restart();
    assert_eq!(sim.result("a"), completed("done and after"));
    assert_eq!(world.notes(), ["attempt 1"], "what was recorded is not tried again");
}

/// S3-46, S3-16
#[test]
fn shutdown_cancels_work_that_outlasts_the_grace_period_and_the_next_process_tries_it_at_once() {
    let (gate, world) = (Gate::default(), World::default());
    let sim = Simulation::new(gated(&gate, &world, false));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    assert_eq!(after(&sim, &mut report, Duration::from_millis(9_999)), None);
    assert_eq!(world.notes(), ["attempt 1"]);
    let report = after(&sim, &mut report, Duration::from_millis(1)).expect("it stopped when it was asked to");
    assert_eq!(report, ShutdownReport { took: GRACE, asked_to_stop: 1, ..ShutdownReport::default() });
    assert_eq!(world.notes(), ["attempt 1", "cancelled: the worker shuts down"]);

    let sim = sim.restart();
    sim.settle();
    assert_eq!(world.notes().last().unwrap(), "attempt 1", "no attempt was used up");
    assert_eq!(describe(&sim, "a").pending[0].last_failure, None);
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("a"), completed("done and after"));
}

/// S3-47, T-13
#[test]
fn shutdown_names_code_that_has_not_stopped_by_the_force_timeout() {
    let (gate, world) = (Gate::default(), World::default());
    let sim = Simulation::new(gated(&gate, &world, true));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    assert_eq!(after(&sim, &mut report, Duration::from_millis(14_999)), None);
    let report = after(&sim, &mut report, Duration::from_millis(1)).expect("the force timeout is over");
    assert_eq!((report.took, report.asked_to_stop), (GRACE + FORCE, 1));
    assert_eq!(report.cut_off.iter().map(|task| task.activity.as_str()).collect::<Vec<_>>(), ["work"]);
    let sim = sim.restart();
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("a"), completed("done and after"));
}

#[test]
fn an_engine_with_nothing_to_do_stops_at_once() {
    let sim = Simulation::new(gated(&Gate::default(), &World::default(), false));
    let report = sim.wait(sim.engine().shut_down());
    assert_eq!(report, ShutdownReport::default());
    let again = sim.wait(sim.engine().shut_down());
    assert_eq!(again, ShutdownReport::default(), "the second caller waits for nothing");
    let sim = sim.restart();
    sim.start("one", "a", "").unwrap();
    assert!(status(&sim, "a").is_open());
}

/// A local activity, and a result that comes before it.
fn with_local(gate: &Gate, paid: &Gate, world: &World) -> Options {
    let (gate, paid, world, noted) = (gate.clone(), paid.clone(), world.clone(), world.clone());
    options()
        .workflow("pays", |ctx: Ctx, input: Payload| async move {
            let paid = ctx.activity("pay", input).await?;
            let local = ctx.local_activity("local", paid).await?;
            Ok(payload(format!("{} and shipped", text(&local))))
        })
        .waiting("pay", move |ctx: ActivityCtx, _| {
            noted.note(format!("pay {}", ctx.info().attempt));
            paid.pass()
        })
        .waiting("local", move |ctx: ActivityCtx, _| {
            world.note(format!("local {}", ctx.info().attempt));
            let pass = gate.pass();
            async move {
                let mut pass = std::pin::pin!(pass);
                std::future::poll_fn(move |cx| match ctx.cancellation() {
                    Some(asked) => std::task::Poll::Ready(Err(asked.into())),
                    None => pass.as_mut().poll(cx),
                })
                .await
            }
        })
}

/// S3-35, S3-46: a local activity that is asked to stop by a shutdown does not fail its run.
#[test]
fn local_work_that_is_asked_to_stop_is_done_by_the_next_process() {
    let (gate, paid, world) = (Gate::default(), Gate::default(), World::default());
    let sim = Simulation::new(with_local(&gate, &paid, &world));
    sim.start("pays", "a", "").unwrap();
    paid.open(Ok(payload("paid")));
    sim.settle();
    assert_eq!(world.notes(), ["pay 1", "local 1"]);
    let mut report = Box::pin(sim.engine().shut_down());
    let report = after(&sim, &mut report, secs(10)).expect("it stopped when it was asked to");
    assert_eq!((report.took, report.asked_to_stop), (GRACE, 1));
    gate.open(Ok(payload("packed")));
    let sim = sim.restart();
    assert_eq!(sim.result("a"), completed("packed and shipped"));
    assert_eq!(world.notes(), ["pay 1", "local 1", "local 1"], "what was paid is not paid again");
}

/// S3-35, S3-46: a result whose turn asks for local work only is recorded before the process ends.
#[test]
fn a_result_that_leads_to_local_work_is_recorded_by_a_process_that_shuts_down() {
    let (gate, paid, world) = (Gate::default(), Gate::default(), World::default());
    let sim = Simulation::new(with_local(&gate, &paid, &world));
    sim.start("pays", "a", "").unwrap();
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    assert_eq!(after(&sim, &mut report, secs(1)), None);
    paid.open(Ok(payload("paid")));
    assert!(after(&sim, &mut report, Duration::from_millis(1)).is_some(), "nothing runs any more");
    gate.open(Ok(payload("packed")));
    let sim = sim.restart();
    assert_eq!(sim.result("a"), completed("packed and shipped"));
    assert_eq!(world.notes(), ["pay 1", "local 1"], "what was paid is not paid again");
}

/// A caller that waits for a shutdown is told of its end, also when the engine is stopped meanwhile.
#[test]
fn shutdown_returns_when_the_engine_is_stopped_meanwhile() {
    let sim = Simulation::new(gated(&Gate::default(), &World::default(), true));
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    assert_eq!(after(&sim, &mut report, secs(3)), None);
    sim.engine().stop();
    assert_eq!(sim.try_wait(&mut report).map(|report| report.took), Some(secs(3)));
}

/// What an attempt reported last reaches the next process, also if it was throttled.
#[test]
fn the_last_report_of_an_attempt_that_is_asked_to_stop_is_stored() {
    let serve = || {
        options().workflow("one", |ctx: Ctx, _| async move { ctx.activity("work", "").await }).waiting(
            "work",
            |ctx: ActivityCtx, _| {
                let mut looks = 0;
                std::future::poll_fn(move |_| {
                    if let Some(details) = &ctx.info().details {
                        return std::task::Poll::Ready(Ok(details.clone()));
                    }
                    looks += 1;
                    match ctx.heartbeat_payload(if looks == 1 { "first" } else { "last" }) {
                        Ok(()) => std::task::Poll::Pending,
                        Err(asked) => std::task::Poll::Ready(Err(asked)),
                    }
                })
            },
        )
    };
    let sim = Simulation::new(serve());
    sim.start("one", "a", "").unwrap();
    sim.advance(secs(1));
    let mut report = Box::pin(sim.engine().shut_down());
    assert!(after(&sim, &mut report, secs(10)).is_some());
    let sim = sim.restart();
    assert_eq!(sim.result("a"), completed("last"));
}

/// A failure that came last is counted, although the process ends with it.
#[test]
fn the_last_failure_of_a_drain_is_noted() {
    let gate = Gate::default();
    let passes = gate.clone();
    let options = options()
        .workflow("one", |ctx: Ctx, _| async move { ctx.activity("work", "").retry(every_second(3)).await })
        .waiting("work", move |_, _| passes.pass());
    let sim = Simulation::new(options);
    sim.start("one", "a", "").unwrap();
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    gate.open(Err(dacapo_core::Failure::application("no luck")));
    assert!(after(&sim, &mut report, Duration::from_millis(1)).is_some());
    gate.shut();
    let sim = sim.restart();
    let pending = &describe(&sim, "a").pending[0];
    assert_eq!((pending.attempt, pending.last_failure.as_ref().unwrap().message.as_str()), (2, "no luck"));
}
