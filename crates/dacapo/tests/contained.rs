//! Bad code among a thousand healthy runs, in a process of its own, because its threads are counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use dacapo::prelude::*;
use dacapo::{QueueSettings, Status};

static RELEASED: AtomicBool = AtomicBool::new(false);
static DOOR: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

fn wait_at_the_door() {
    drop(DOOR.1.wait_while(DOOR.0.lock().unwrap(), |open| !*open).unwrap());
}

fn release() {
    RELEASED.store(true, Ordering::Relaxed);
    *DOOR.0.lock().unwrap() = true;
    DOOR.1.notify_all();
}

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

#[workflow]
async fn spins(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(step, 1).await?;
    while !RELEASED.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Ok(0)
}

#[workflow]
async fn sleeps(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(step, 1).await?;
    wait_at_the_door();
    Ok(0)
}

#[workflow]
async fn panics(_ctx: Ctx) -> Result<u64, Failure> {
    panic!("on purpose")
}

/// Blocks its thread and ignores its cancellation.
#[activity]
fn deaf(_number: u64) -> Result<u64, Failure> {
    wait_at_the_door();
    Ok(0)
}

#[workflow]
async fn calls_deaf(ctx: Ctx) -> Result<u64, Failure> {
    ctx.call(deaf, 1).start_to_close(millis(50)).retry(Retry::exponential().attempts(1)).await
}

/// Returns how many threads of the process have names that begin like this.
fn threads(beginning: &str) -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    });
    names.filter(|name| name.starts_with(beginning)).count()
}

/// Waits until a condition holds: it takes a moment until threads that are not needed have left. Panics with `what` it waited for.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < secs(120), "waited 120 s in vain for {what}");
        // sleep: leaves the processor to the threads that are waited for, between two looks.
        tokio::time::sleep(millis(10)).await;
    }
}

/// S3-1, S3-13, S3-14, S3-43, T-11, C-23: a workflow that spins, one that sleeps, one that panics and an activity that ignores
/// everything: a thousand others finish, the four can be terminated, and once their code has returned the process has as
/// many threads as before.
#[test]
fn bad_code_among_a_thousand_healthy_runs_is_contained_and_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(millis(10))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let queue = QueueSettings::new("default")
            .workflow_deadlock_timeout(millis(200))
            .zombie_grace_period(millis(100))
            .zombie_retry_interval(millis(50));
        let served = (healthy, spins, sleeps, panics, calls_deaf, step, deaf);
        let app = Dacapo::open("memory:").await.unwrap().queue(queue).serve(served).await.unwrap();
        let (base, _) = app.turn_threads();
        // The thread that opened the store leaves, and the runtime's two workers stay.
        until("the end of the thread that opened the store", || threads("tokio-rt-worker") == 2).await;
        let before = threads("");
        let bad = [
            app.start(spins, ()).await.unwrap(),
            app.start(sleeps, ()).await.unwrap(),
            app.start(panics, ()).await.unwrap(),
            app.start(calls_deaf, ()).await.unwrap(),
        ];
        let mut runs = Vec::new();
        for _ in 0..1_000 {
            runs.push(app.start(healthy, 3).await.unwrap());
        }
        for run in runs {
            assert_eq!(run.result().await.unwrap(), 3);
        }
        // The activity's run ends by itself; the workflows are stuck and are terminated.
        assert!(bad[3].result().await.is_err());
        until("three zombies", || app.health()[0].1.zombies >= 3).await;
        for run in &bad[..3] {
            run.terminate("it does no good").await.unwrap();
            assert_eq!(run.describe().await.unwrap().status, Status::Terminated);
        }
        release();
        until("the end of the code that was asked to stop", || app.health()[0].1.entities.is_empty()).await;
        until("the end of the turn threads that are not needed", || app.turn_threads() == (base, 0)).await;
        until("as many threads as before", || threads("") == before).await;
    });
}
