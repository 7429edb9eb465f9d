//! Attempts that do not stop when they are asked to, seen from outside, at exact times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Ctx, Payload};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_store::Status;
use dacapo_testkit::Simulation;
use dacapo_worker::{Health, QueueValues};

use crate::kit::{
    Gate, Serve, World, completed, describe, every_second, options, over_every_cache, payload, secs, signal, text,
};

const LONG: Duration = Duration::from_millis(100);

/// Calls `stuck`, which waits at a gate and is given up on after 100 ms, then goes on; and `quick`, which does neither.
fn stubborn(gate: &Gate) -> Options {
    let gate = gate.clone();
    options()
        .workflow("tries", |ctx: Ctx, input: Payload| async move {
            let queue = text(&input);
            let mut call = ctx.activity("stuck", "").start_to_close(LONG).retry(every_second(1));
            if !queue.is_empty() {
                call = call.queue(queue);
            }
            match call.await {
                Ok(result) => Ok(result),
                Err(_) => ctx.activity("quick", "").await,
            }
        })
        .waiting("stuck", move |_, _| gate.pass())
        .activity("quick", |_, _| Ok(payload("went on")))
}

fn health(sim: &Simulation, queue: &str) -> Health {
    let of_queue = |(name, health)| (name == queue).then_some(health);
    sim.engine().health().into_iter().find_map(of_queue).expect("the queue is served")
}

fn counts(sim: &Simulation) -> (usize, usize, usize) {
    let health = health(sim, "default");
    (health.terminating, health.zombies, health.leaked)
}

/// A sim with so many attempts that were given up on and go on, all at 100 ms.
fn given_up(options: Options, number: usize) -> Simulation {
    const IDS: [&str; 4] = ["a", "b", "c", "d"];
    let sim = Simulation::new(options);
    sim.ignore_cancellation("stuck");
    for id in &IDS[..number] {
        sim.start("tries", id, "").unwrap();
    }
    sim.advance(LONG);
    sim
}

/// S3-20, S3-22, S3-24, S3-28, S3-29, S3-32: what an attempt is at each moment after it was given up on, and that it can
/// be seen.
#[test]
fn an_attempt_that_does_not_stop_is_a_zombie_after_ten_seconds() {
    let gate = Gate::default();
    let sim = given_up(stubborn(&gate), 1);
    assert_eq!(counts(&sim), (1, 0, 0));
    assert_eq!(sim.result("a"), completed("went on"), "its run goes on without it");
    let sim = given_up(stubborn(&gate), 1);
    sim.advance(Duration::from_millis(9_999));
    assert_eq!(counts(&sim), (1, 0, 0));
    sim.advance(Duration::from_millis(1));
    assert_eq!(counts(&sim), (0, 1, 0));
    let seen = health(&sim, "default").to_string();
    assert!(seen.contains("Zombie since") && seen.contains("(stuck) of queue \"default\""), "{seen}");
    sim.advance(secs(3_589));
    assert_eq!(counts(&sim), (0, 1, 0));
    sim.advance(secs(1));
    assert_eq!(counts(&sim), (0, 1, 1));
    gate.open(Ok(payload("far too late")));
    sim.advance(secs(1));
    assert_eq!(counts(&sim), (0, 0, 0));
    assert_eq!(sim.result("a"), completed("went on"), "its late result is dropped");
}

/// S3-26: code that stops within the grace period leaves no trace.
#[test]
fn attempt_that_stops_in_time_is_no_zombie() {
    let gate = Gate::default();
    let sim = given_up(stubborn(&gate), 1);
    sim.advance(secs(5));
    gate.open(Ok(payload("late")));
    sim.settle();
    assert_eq!((counts(&sim), sim.ends()), ((0, 0, 0), Vec::<String>::new()));
}

/// S3-39: with one place, taken by an attempt that does not stop, the next attempt begins all the same.
#[test]
fn a_zombie_takes_no_place() {
    let mut one_place = stubborn(&Gate::default());
    one_place.queue("default").max_concurrent_activities = 1;
    let sim = given_up(one_place, 1);
    sim.advance(secs(60));
    assert_eq!(counts(&sim), (0, 1, 0));
    sim.start("tries", "b", "").unwrap();
    sim.advance(LONG);
    assert_eq!(sim.result("b"), completed("went on"));
}

/// S3-34, S3-35, S3-49: the last zombie that is borne shuts the engine down, once, and others end as they should.
#[test]
fn too_many_zombies_shut_the_engine_down_and_the_healthy_end_well() {
    let (gate, healthy) = (Gate::default(), Gate::default());
    let passes = healthy.clone();
    let mut options = stubborn(&gate)
        .workflow("works", |ctx: Ctx, _| async move { ctx.activity("healthy", "").await })
        .waiting("healthy", move |_, _| passes.pass());
    options.queue("default").max_zombie_count = 3;
    let sim = given_up(options, 3);
    sim.start("works", "w", "").unwrap();
    sim.advance(Duration::from_millis(9_999));
    assert_eq!((sim.ends().len(), sim.engine().is_shutting_down()), (0, false));
    let mut dying = Box::pin(sim.engine().shuts_down_by_itself());
    assert_eq!(sim.try_wait(&mut dying), None);
    sim.advance(Duration::from_millis(1));
    assert_eq!(counts(&sim), (0, 3, 0));
    let ends = sim.ends();
    assert_eq!(ends.len(), 1);
    assert!(ends[0].contains("queue \"default\" has 3 zombies"), "{ends:?}");
    assert_eq!(sim.wait(dying).to_string(), ends[0]);
    let refused = sim.wait(sim.engine().start(NewStart {
        workflow: "works".into(),
        workflow_id: "x".into(),
        ..NewStart::default()
    }));
    assert_eq!(refused, Err(Error::ShutDown));
    healthy.open(Ok(payload("in time")));
    sim.advance(secs(8));
    assert_eq!(describe(&sim, "w").status, Status::Completed, "it had time to end, and its result is recorded");
    let mut report = Box::pin(sim.engine().shut_down());
    sim.advance(secs(22));
    let report = sim.try_wait(&mut report).expect("a shutdown waits for zombies for 30 s at most");
    assert_eq!((report.took, report.cut_off.len(), report.left.len()), (secs(30), 0, 3));
    assert_eq!(sim.ends().len(), 1);
}

/// S3-38
#[test]
fn with_no_limit_zombies_are_only_counted() {
    let mut options = stubborn(&Gate::default());
    options.queue("default").max_zombie_count = 0;
    let sim = given_up(options, 4);
    sim.advance(secs(60));
    assert_eq!((counts(&sim), sim.ends().len()), ((0, 4, 0), 0));
    assert!(!sim.engine().is_shutting_down());
}

/// S3-40, S3-52, S3-1: each queue goes by its own settings, and one queue's zombies are not another's.
#[test]
fn each_queue_counts_its_own_zombies_by_its_own_settings() {
    let mut options = stubborn(&Gate::default());
    options.queues.insert("hasty".into(), QueueValues { zombie_grace_period: secs(3), ..QueueValues::default() });
    options.queue("calm");
    let sim = Simulation::new(options);
    sim.ignore_cancellation("stuck");
    sim.start("tries", "a", "hasty").unwrap();
    sim.start("tries", "b", "calm").unwrap();
    sim.advance(LONG + secs(3));
    assert_eq!((health(&sim, "hasty").zombies, health(&sim, "calm").zombies), (1, 0));
    sim.advance(secs(7));
    assert_eq!((health(&sim, "hasty").zombies, health(&sim, "calm").zombies), (1, 1));
    assert_eq!((sim.result("a"), sim.result("b")), (completed("went on"), completed("went on")));
}

/// S3-54: a shutdown waits for code that was asked to stop before, for 30 s and no longer.
#[test]
fn a_shutdown_waits_for_code_that_was_asked_to_stop_before() {
    let gate = Gate::default();
    let sim = given_up(stubborn(&gate), 1);
    let mut report = Box::pin(sim.engine().shut_down());
    sim.advance(Duration::from_millis(29_999));
    assert_eq!(sim.try_wait(&mut report), None);
    sim.advance(Duration::from_millis(1));
    let left = sim.try_wait(&mut report).expect("30 s are over").left;
    assert_eq!(left.iter().map(|code| code.entity.type_name.as_str()).collect::<Vec<_>>(), ["stuck"]);

    let sim = given_up(stubborn(&gate), 1);
    let mut report = Box::pin(sim.engine().shut_down());
    sim.advance(secs(20));
    gate.open(Ok(payload("late")));
    sim.settle();
    let report = sim.try_wait(&mut report).expect("it has ended");
    assert_eq!((report.took, report.left.len()), (secs(20), 0));
}

/// C-22: three queues stop in the time of the slowest, not of all together.
#[test]
fn queues_shut_down_at_the_same_time() {
    let mut options = stubborn(&Gate::default()).workflow("waits", |ctx: Ctx, input: Payload| async move {
        ctx.activity("stuck", "").queue(text(&input)).await
    });
    for (queue, grace) in [("one", 1), ("two", 2), ("three", 3)] {
        options.queue(queue).shutdown_grace_period = secs(grace);
    }
    let sim = Simulation::new(options);
    for (id, queue) in [("a", "one"), ("b", "two"), ("c", "three")] {
        sim.start("waits", id, queue).unwrap();
    }
    sim.settle();
    let mut report = Box::pin(sim.engine().shut_down());
    sim.advance(Duration::from_millis(7_999));
    assert_eq!(sim.try_wait(&mut report), None);
    sim.advance(Duration::from_millis(1));
    let report = sim.try_wait(&mut report).expect("the slowest queue has stopped");
    assert_eq!((report.took, report.asked_to_stop, report.cut_off.len()), (secs(8), 3, 3));
}

/// S3-22: local work and work of a closed run are looked after as well.
#[test]
fn attempt_that_was_given_up_on_is_watched_until_it_ends() {
    let gate = Gate::default();
    let options = stubborn(&gate)
        .workflow("local", |ctx: Ctx, _| async move {
            let call = ctx.local_activity("stuck", "").start_to_close(LONG).retry(every_second(1));
            call.await.or(Ok(payload("went on")))
        })
        .workflow("drops", |ctx: Ctx, _| async move {
            let call = ctx.activity("stuck", "");
            ctx.next_signal("enough").await?;
            drop(call);
            ctx.next_signal("never").await?;
            Ok(payload(""))
        });
    let sim = Simulation::new(options);
    sim.ignore_cancellation("stuck");
    sim.start("local", "a", "").unwrap();
    sim.start("drops", "b", "").unwrap();
    sim.start("drops", "c", "").unwrap();
    sim.advance(LONG);
    assert_eq!((counts(&sim), sim.result("a")), ((1, 0, 0), completed("went on")));
    signal(&sim, "b", "enough", "");
    sim.settle();
    assert_eq!(health(&sim, "default").entities.len(), 2);
    sim.wait(sim.engine().terminate(&RunId::of("c"), "enough")).unwrap();
    sim.settle();
    assert_eq!(health(&sim, "default").entities.len(), 3);
    gate.open(Ok(payload("late")));
    sim.settle();
    assert_eq!(counts(&sim), (0, 0, 0));
}

/// S3-33, S3-56: a day of attempts of which many are given up on and some end much later: every run ends, no zombie is
/// left, and histories do not depend on what stays in memory.
#[test]
fn day_of_timeouts_cancellations_and_restarts_leaves_no_zombie() {
    let clock = Arc::new(AtomicU64::new(0));
    let world = World::default();
    let serve = || {
        let (clock, world) = (clock.clone(), world.clone());
        clock.store(0, Ordering::Relaxed);
        let mut options = options()
            .workflow("day", |ctx: Ctx, _| async move {
                let mut done = 0;
                for step in 0..48_u64 {
                    let call = ctx.activity("erratic", payload(step.to_string())).start_to_close(secs(30));
                    done += u32::from(call.retry(every_second(2)).await.is_ok());
                    ctx.sleep(secs(1_800)).await?;
                }
                Ok(payload(done.to_string()))
            })
            .waiting("erratic", move |ctx, input| {
                // How many times it is looked at before it ends: some never make it within the 30 s.
                let step: u64 = text(&input).parse().unwrap();
                let ends = ctx.info().started.after(secs((step * 7_919 + u64::from(ctx.info().attempt) * 31) % 97));
                let (clock, world) = (clock.clone(), world.clone());
                std::future::poll_fn(move |_| {
                    if clock.load(Ordering::Relaxed) < ends.0 {
                        return Poll::Pending;
                    }
                    world.note("ended");
                    Poll::Ready(Ok(payload("done")))
                })
            });
        options.queue("default").max_zombie_count = 0;
        options
    };
    over_every_cache(serve, |sim| {
        sim.ignore_cancellation("erratic");
        sim.start("day", "a", "").unwrap();
        let mut most = 0;
        for _ in 0..86_400 / 10 {
            sim.advance(secs(10));
            clock.store(sim.now().0, Ordering::Relaxed);
            sim.settle();
            most = most.max(health(sim, "default").zombies);
        }
        assert!(most > 0, "there were zombies");
        let (status, _) = sim.result("a");
        clock.store(u64::MAX, Ordering::Relaxed);
        sim.settle();
        assert_eq!((status, counts(sim)), (Status::Completed, (0, 0, 0)));
        vec!["a"]
    });
    assert!(world.count() > 48);
}
