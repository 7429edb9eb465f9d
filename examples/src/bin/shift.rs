//! A worker that serves until a signal asks it to end, lets work end, and prints what it left behind.
//!
//! `shift <file> <work> <grace ms> <force ms> <force exit ms>`, where the work is `brief` (ends when a file `<file>-go` is
//! there), `polite` (ends when it is asked to), `deaf` (never ends), `hog` (never ends, and blocks a thread of the
//! program's runtime) or `zombie` (the same, given up on after 50 ms).

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use dacapo::QueueSettings;
use dacapo::prelude::*;

/// Whether the process handles signals by now. A test must not send one before.
static LISTENS: AtomicBool = AtomicBool::new(false);

async fn listening() {
    while !LISTENS.load(Ordering::Acquire) {
        tokio::time::sleep(millis(1)).await;
    }
}

#[activity]
async fn brief(file: String) -> Result<String, Failure> {
    listening().await;
    println!("working");
    while !std::path::Path::new(&format!("{file}-go")).exists() {
        tokio::time::sleep(millis(5)).await;
    }
    Ok("brief".into())
}

#[activity]
async fn polite(ctx: ActivityCtx, _file: String) -> Result<String, Failure> {
    listening().await;
    println!("working");
    Err(ctx.cancelled().await.into())
}

/// Blocks its thread for ever and ignores its cancellation.
#[activity]
fn deaf(_file: String) -> Result<String, Failure> {
    while !LISTENS.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    println!("working");
    loop {
        std::thread::park();
    }
}

/// Blocks a thread of the async runtime for ever, as code does that calls blocking functions in an async activity.
#[activity]
async fn hog(_file: String) -> Result<String, Failure> {
    listening().await;
    println!("working");
    loop {
        std::thread::park();
    }
}

#[workflow]
async fn shift(ctx: Ctx, work: String, file: String) -> Result<String, Failure> {
    match work.as_str() {
        "brief" => ctx.call(brief, file).await,
        "polite" => ctx.call(polite, file).await,
        "hog" => ctx.call(hog, file).await,
        // On a busy machine an attempt may be over before it has begun, and then it is no zombie.
        "zombie" => ctx.call(deaf, file).start_to_close(millis(50)).retry(Retry::exponential().attempts(0)).await,
        _ => ctx.call(deaf, file).await,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, work, times @ ..] = arguments.as_slice() else { anyhow::bail!("shift <file> <work> <times in ms>") };
    let time =
        |place: usize| -> Result<std::time::Duration> { Ok(millis(times.get(place).context("three times")?.parse()?)) };
    let (grace, force, force_exit) = (time(0)?, time(1)?, time(2)?);
    let app = Dacapo::open(&format!("sqlite:{file}"))
        .await?
        .settings(|app| {
            let queue_times = |queue: QueueSettings| queue.shutdown_grace_period(grace).shutdown_force_timeout(force);
            app.force_exit_timeout(force_exit).every_queue(queue_times)
        })
        .serve((shift, brief, polite, deaf, hog))
        .await?;
    app.start(shift, (work.clone(), file.clone())).id("shift").id_conflict(IdConflict::UseExisting).await?;
    // Polled once, it listens.
    let mut served = Box::pin(app.serve_until_signalled());
    let at_once = std::future::poll_fn(|cx| std::task::Poll::Ready(served.as_mut().poll(cx).is_ready())).await;
    anyhow::ensure!(!at_once, "it was not asked to end yet");
    LISTENS.store(true, Ordering::Release);
    let report = served.await?;
    println!("asked to stop: {}, cut off: {}", report.asked_to_stop, report.cut_off.len());
    Ok(())
}
