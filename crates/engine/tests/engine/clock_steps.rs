//! Steps of the machine's clock: stored timers follow them, what runs does not notice.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use dacapo_core::{Ctx, Retry};
use dacapo_engine::{Engine, NewStart, RunId, Threads};
use dacapo_store::{MemoryStore, Status};
use dacapo_testkit::Simulation;

use crate::kit::{Gate, Serve, completed, describe, every_second, options, payload, secs, status};

const TWO_HOURS: Duration = Duration::from_secs(7_200);

/// A timer of the time of day fires when the clock is set beyond it, and one behind it does not wait for an older alarm.
#[test]
fn timers_that_a_forward_step_makes_due_fire_at_once() {
    let sim = Simulation::new(options().workflow("sleeps", |ctx: Ctx, _| async move {
        ctx.sleep(secs(3_600)).await?;
        ctx.sleep(Duration::from_millis(500)).await?;
        Ok(payload("awake"))
    }));
    sim.start("sleeps", "a", "").unwrap();
    sim.settle();
    sim.step_clock(TWO_HOURS);
    assert_eq!(describe(&sim, "a").turns, 2, "the hour is over");
    sim.advance(Duration::from_millis(499));
    assert_eq!(status(&sim, "a"), Status::Open);
    sim.advance(Duration::from_millis(1));
    assert_eq!(sim.result("a"), completed("awake"));
}

/// Timeouts of attempts and heartbeats count time that passes, and not what the clock is set to.
#[test]
fn forward_step_times_out_no_attempt_that_runs() {
    let gate = Gate::default();
    let passing = gate.clone();
    let sim = Simulation::new(
        options()
            .workflow("calls", |ctx: Ctx, _| async move {
                let call = ctx.activity("work", "").start_to_close(secs(60)).heartbeat(secs(30));
                let call = call.schedule_to_close(secs(90));
                call.retry(Retry { attempts: 1, ..every_second(1) }).await
            })
            .waiting("work", move |_, _| passing.pass()),
    );
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    sim.step_clock(TWO_HOURS);
    sim.advance(secs(29));
    assert_eq!(describe(&sim, "a").pending.len(), 1, "it runs");
    gate.open(Ok(payload("done")));
    sim.settle();
    assert_eq!(sim.result("a"), completed("done"));
}

/// A timeout of all attempts together is a stored timer, and fires early after a step. It waits for the rest of its time.
#[test]
fn timeout_of_all_attempts_counts_time_that_passes_in_spite_of_a_step() {
    let gate = Gate::default();
    let passing = gate.clone();
    let sim = Simulation::new(
        options()
            .workflow("calls", |ctx: Ctx, _| async move { ctx.activity("work", "").schedule_to_close(secs(90)).await })
            .waiting("work", move |_, _| passing.pass()),
    );
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    sim.advance(secs(30));
    sim.step_clock(TWO_HOURS);
    sim.advance(secs(59));
    assert_eq!(status(&sim, "a"), Status::Open);
    sim.advance(secs(1));
    let failure = sim.result("a").1.unwrap_err();
    assert!(failure.to_string().contains("schedule-to-close"), "{failure}");
}

/// A host with real threads and a clock that the test sets.
struct Machine {
    wall: Arc<Mutex<SystemTime>>,
    engine: Engine,
    /// Ends the threads when it is dropped.
    _host: Arc<Threads>,
}

impl Machine {
    fn new() -> Self {
        let serve = options().workflow("sleeps", |ctx: Ctx, input| async move {
            ctx.sleep(Duration::from_millis(crate::kit::text(&input).parse().unwrap())).await?;
            Ok(payload("awake"))
        });
        let wall = Arc::new(Mutex::new(SystemTime::now()));
        let read = wall.clone();
        let runtime = tokio::runtime::Handle::current();
        let clock = Arc::new(move || *read.lock().unwrap());
        let host = Threads::with_clock(&serve, 1, secs(60), runtime, clock).unwrap();
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, host.clone(), serve).unwrap();
        host.watch(&engine).unwrap();
        Self { wall, engine, _host: host }
    }

    async fn start(&self, id: &'static str, millis: &str) {
        let new = NewStart {
            workflow: "sleeps".into(),
            workflow_id: id.into(),
            input: vec![payload(millis)],
            ..NewStart::default()
        };
        self.engine.start(new).await.unwrap();
    }

    async fn result(&self, id: &'static str) {
        let of = RunId::of(id);
        let result = tokio::time::timeout(secs(60), self.engine.result(&of)).await;
        assert_eq!(result.expect("the timer fires").unwrap(), completed("awake"));
    }
}

#[tokio::test]
async fn process_notices_a_forward_step_within_a_second_or_so() {
    let machine = Machine::new();
    machine.start("a", "3600000").await;
    *machine.wall.lock().unwrap() += TWO_HOURS;
    machine.result("a").await;
}

#[tokio::test]
async fn short_timer_behind_a_long_one_fires_after_a_forward_step() {
    let machine = Machine::new();
    machine.start("long", "86400000").await;
    *machine.wall.lock().unwrap() += TWO_HOURS;
    machine.start("short", "500").await;
    machine.result("short").await;
}

#[tokio::test]
async fn timers_fire_in_time_after_a_backward_step() {
    let machine = Machine::new();
    machine.start("before", "300").await;
    *machine.wall.lock().unwrap() -= Duration::from_secs(3_600);
    // Each within the patience of `result`, which is far shorter than the hour.
    machine.result("before").await;
    machine.start("after", "300").await;
    machine.result("after").await;
}

/// Local work is retried here, and its timeout is no stored timer.
#[test]
fn forward_step_times_out_no_local_work_that_is_retried() {
    let tries = Arc::new(Mutex::new(0));
    let counted = tries.clone();
    let sim = Simulation::new(
        options()
            .workflow("calls", |ctx: Ctx, _| async move {
                ctx.local_activity("work", "").schedule_to_close(secs(90)).retry(every_second(5)).await
            })
            .activity("work", move |_, _| {
                let mut tries = counted.lock().unwrap();
                *tries += 1;
                if *tries < 3 { Err(dacapo_core::Failure::application("not yet")) } else { Ok(payload("done")) }
            }),
    );
    sim.start("calls", "a", "").unwrap();
    sim.settle();
    sim.step_clock(TWO_HOURS);
    sim.advance(secs(5));
    assert_eq!(sim.result("a"), completed("done"));
    assert_eq!(*tries.lock().unwrap(), 3);
}
