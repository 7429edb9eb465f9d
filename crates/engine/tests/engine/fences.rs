//! What comes too late, twice or from nowhere changes nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo_core::{Ctx, Failure, Job, Outcome, Payload, Resolution, Retry, Seq};
use dacapo_engine::Options;
use dacapo_store::{NewMessage, Write};
use dacapo_testkit::Simulation;
use dacapo_worker::ActivityCtx;

use crate::kit::{Gate, NO_ROWS, Serve, World, completed, describe, options, over_every_cache, payload, rows, signal};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The code of an attempt that was given up on may still run, and report.
#[test]
fn a_report_of_an_attempt_that_was_given_up_on_says_nothing_of_the_next() {
    let first: Arc<Mutex<Option<ActivityCtx>>> = Arc::default();
    let gate = Gate::default();
    let (kept, at_gate) = (first.clone(), gate.clone());
    let options = options()
        .workflow("slow", |ctx: Ctx, _| async move {
            ctx.activity("work", "").heartbeat(secs(10)).retry(Retry::exponential().attempts(2)).await
        })
        .waiting("work", move |ctx, _| {
            kept.lock().unwrap().get_or_insert(ctx);
            at_gate.pass()
        });
    let sim = Simulation::new(options);
    sim.start("slow", "a", "").unwrap();
    // Given up at 10 s; the second attempt begins at 11 s and would be given up at 21 s.
    sim.advance(secs(20));
    assert_eq!(describe(&sim, "a").pending[0].attempt, 2);
    let _ = first.lock().unwrap().as_ref().unwrap().heartbeat_payload("still here");
    let pending = describe(&sim, "a").pending.remove(0);
    assert_eq!((pending.details, pending.last_heartbeat), (None, pending.started));
    sim.advance(secs(2));
    let (_, result) = sim.result("a");
    assert!(result.unwrap_err().to_string().contains("heartbeat timeout"), "the report kept no attempt alive");
}

fn one_activity() -> Options {
    options()
        .workflow("one", |ctx: Ctx, input: Payload| async move {
            let first = ctx.activity("work", input).await?;
            ctx.next_signal("go").await.map_err(Failure::from)?;
            Ok(first)
        })
        .activity("work", |_, input| Ok(input))
}

/// S2-25
#[test]
fn result_that_comes_twice_or_for_another_operation_is_dropped_and_leaves_no_message() {
    over_every_cache(one_activity, |sim| {
        let started = sim.start("one", "a", "right").unwrap();
        sim.settle();
        let outcome = || Outcome::Completed(payload("wrong"));
        let forged = [
            Job::resolve(Seq(0), Resolution::Activity(outcome())),
            Job::resolve(Seq(0), Resolution::Child(outcome())),
            Job::resolve(Seq(7), Resolution::Timer),
        ];
        for (number, job) in forged.into_iter().enumerate() {
            let job = dacapo_core::to_stored(&job);
            let message = NewMessage { key: format!("forged:{number}").into(), sent: sim.now(), job };
            sim.store().submit(Write::Send { run: started.run, message, ended: None }, Box::new(|_| {}));
        }
        sim.engine().evict_idle();
        signal(sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("right"));
        assert_eq!(rows(sim, "a"), NO_ROWS);
        vec!["a"]
    });
}

#[test]
fn the_timeout_of_a_local_attempt_that_failed_does_not_end_the_next() {
    let (world, gate) = (World::default(), Gate::default());
    let (noted, at_gate) = (world.clone(), gate.clone());
    let options = options()
        .workflow("local", |ctx: Ctx, _| async move { ctx.local_activity("work", "").start_to_close(secs(5)).await })
        .waiting("work", move |ctx, _| {
            noted.note(format!("attempt {}", ctx.info().attempt));
            let (first, pass) = (ctx.info().attempt == 1, at_gate.pass());
            async move { if first { Err(Failure::application("once")) } else { pass.await } }
        });
    let sim = Simulation::new(options);
    sim.start("local", "a", "").unwrap();
    // The first fails at once, the second begins at 1 s: the first one's time is over at 5 s, the second's at 6 s.
    sim.advance(Duration::from_millis(5_500));
    gate.open(Ok(payload("done")));
    assert_eq!(sim.result("a"), completed("done"));
    assert_eq!(world.notes(), ["attempt 1", "attempt 2"]);
}
