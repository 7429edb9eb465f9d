//! Workflow code that blocks, spins or panics among healthy runs: it is noticed, contained and named.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use dacapo::prelude::*;

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
    loop {
        let stuck = run.describe().await.unwrap().stuck.map(|stuck| stuck.reason);
        if let Some(stuck) = stuck.filter(|stuck| stuck.contains(reason)) {
            return stuck;
        }
        tokio::time::sleep(millis(5)).await;
    }
}

/// S3-43, T-11, C-23
#[tokio::test(flavor = "multi_thread")]
async fn turns_that_do_not_return_are_given_up_on_and_nobody_else_notices() {
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .turn_threads(2)
        .workflow_deadlock_timeout(millis(200))
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
        assert!(reason.contains("unit []") && reason.contains(place), "{reason}");
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
    while app.turn_threads() != (threads, 0) {
        tokio::time::sleep(millis(5)).await;
    }
    assert_eq!(blocked.history().await.unwrap().turns.len(), 2, "each turn is recorded once");
}
