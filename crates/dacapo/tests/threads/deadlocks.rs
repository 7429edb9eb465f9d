//! Workflow code that blocks, spins or panics among healthy runs: it is noticed, contained and named.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use dacapo::prelude::*;

use crate::waiting::wait_until;

#[activity]
async fn step(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

#[workflow]
async fn healthy(ctx: Ctx, steps: u64) -> Result<u64, Failure> {
    let mut number = 0;
    for _ in 0..steps {
        number = ctx.call(step, number).await?;
    }
    Ok(number)
}

/// A door that workflow code waits at, as it never should.
struct Door(Mutex<bool>, Condvar);

impl Door {
    const fn new() -> Self {
        Self(Mutex::new(false), Condvar::new())
    }

    fn wait(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

static DOOR: Door = Door::new();
static SPIN: AtomicBool = AtomicBool::new(true);

#[workflow]
async fn blocks(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(step, 1).await?;
    DOOR.wait();
    Ok("through the door".into())
}

#[workflow]
async fn blocks_at_once(_ctx: Ctx) -> Result<String, Failure> {
    DOOR.wait();
    Ok("through the door".into())
}

#[workflow]
async fn spins(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(step, 1).await?;
    while SPIN.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Ok("out of breath".into())
}

#[workflow]
async fn panics(_ctx: Ctx) -> Result<(), Failure> {
    panic!("on purpose")
}

/// Why a run is stuck, once it is for this reason.
async fn stuck<O>(run: &Handle<O>, reason: &str) -> String {
    let mut found = String::new();
    wait_until(&format!("a run that is stuck: {reason}"), async || {
        found = run.describe().await.unwrap().stuck.map(|stuck| stuck.reason).unwrap_or_default();
        found.contains(reason)
    })
    .await;
    found
}

/// S3-43, T-11, C-23
#[tokio::test(flavor = "multi_thread")]
async fn turn_that_does_not_return_is_abandoned_and_other_runs_go_on() {
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .settings(|app| app.turn_threads(2).every_queue(|queue| queue.workflow_deadlock_timeout(millis(200))))
        .serve((healthy, blocks, blocks_at_once, spins, panics, step))
        .await
        .unwrap();
    let (threads, _) = app.turn_threads();
    let blocked = app.start(blocks, ()).await.unwrap();
    let spinning = app.start(spins, ()).await.unwrap();
    let panicked = app.start(panics, ()).await.unwrap();
    // Its first turn does not return, and its start is answered all the same.
    let at_once = app.start(blocks_at_once, ()).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.push(app.start(healthy, 5).await.unwrap());
    }
    for run in runs {
        assert_eq!(run.result().await.unwrap(), 5);
    }
    for (run, place) in
        [(&blocked, "the call at crates/dacapo"), (&at_once, "after no call"), (&spinning, "the call at")]
    {
        let reason = stuck(run, "deadlock: turn ").await;
        assert!(reason.contains("the root unit") && reason.contains(place), "{reason}");
    }
    // The first time a panic is printed may take longer than a turn here should; then it is played again.
    stuck(&panicked, "on purpose").await;
    let (_, abandoned) = app.turn_threads();
    assert!(abandoned >= 3, "{abandoned} threads were abandoned");

    // The code returns, far too late: what it decided is void, and the runs are played anew.
    DOOR.open();
    SPIN.store(false, Ordering::Relaxed);
    assert_eq!(blocked.result().await.unwrap(), "through the door");
    assert_eq!(at_once.result().await.unwrap(), "through the door");
    assert_eq!(spinning.result().await.unwrap(), "out of breath");
    wait_until("the end of threads that are not needed", async || app.turn_threads() == (threads, 0)).await;
    assert_eq!(blocked.transcript().await.unwrap().turns.len(), 2, "each turn is recorded once");
}

static GATE: Door = Door::new();

#[workflow]
async fn blocks_for_long(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(step, 1).await?;
    GATE.wait();
    Ok(1)
}

/// S3-43, S3-22: a run that is tried again although its last turn has not returned would cost a thread each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_turn_does_not_return_costs_one_thread_and_is_played_again_once_it_has() {
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .settings(|app| app.every_queue(|queue| queue.workflow_deadlock_timeout(millis(100))))
        .serve((blocks_for_long, step))
        .await
        .unwrap();
    let run = app.start(blocks_for_long, ()).await.unwrap();
    stuck(&run, "deadlock: turn ").await;
    let first = run.describe().await.unwrap().stuck.unwrap();
    // The engine has tried it again once the time of the next attempt has passed.
    let has_passed =
        async || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() >= u128::from(first.retry.0) + 500_000_000;
    wait_until("the moment of the next try", has_passed).await;
    assert_eq!((app.turn_threads().1, app.health()[0].1.entities.len()), (1, 1));
    GATE.open();
    assert_eq!(run.result().await.unwrap(), 1);
    wait_until("the end of the turn that was given up", async || app.health()[0].1.entities.is_empty()).await;
}

static LATE: Door = Door::new();

#[workflow]
async fn takes_its_time(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(step, 1).await?;
    LATE.wait();
    Ok(2)
}

/// S3-43: with 0 a turn may take all the time there is, and others do not notice either.
#[tokio::test(flavor = "multi_thread")]
async fn deadlock_timeout_of_zero_abandons_no_turn() {
    let store = Dacapo::open("memory:")
        .await
        .unwrap()
        .settings(|app| app.turn_threads(1).every_queue(|queue| queue.workflow_deadlock_timeout(secs(0))));
    let app = store.serve((takes_its_time, healthy, step)).await.unwrap();
    let slow = app.start(takes_its_time, ()).await.unwrap();
    let others: Vec<_> = futures::future::join_all((0..50).map(|_| async { app.start(healthy, 3).await })).await;
    for run in others {
        assert_eq!(run.unwrap().result().await.unwrap(), 3);
    }
    LATE.open();
    assert_eq!(slow.result().await.unwrap(), 2);
    assert_eq!((app.turn_threads().1, slow.describe().await.unwrap().stuck), (0, None));
}
