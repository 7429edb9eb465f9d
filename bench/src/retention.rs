//! Retention beside full load: whether the file stops growing, and what that costs those who run beside it. Runs are kept for
//! ever and for a second, in turns, because what a shared machine gives changes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use dacapo::prelude::*;
use dacapo::{App, Filter};
use dacapo_bench_meter::{Latencies, Line, Usage};
use tokio::task::JoinSet;

/// How much of it is run.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// So many runs at a time.
    runs: u32,
    /// How often both are measured, and for how long each time.
    rounds: u32,
    time: Duration,
}

impl Load {
    pub(crate) const FULL: Self = Self { runs: 500, rounds: 3, time: Duration::from_secs(20) };
    pub(crate) const QUICK: Self = Self { runs: 20, rounds: 1, time: Duration::from_secs(3) };
}

/// How long closed runs are kept, where they are not kept for ever.
const KEPT: Duration = Duration::from_secs(1);
const STEPS: u32 = 10;

#[activity]
async fn step(number: u32) -> Result<u32, Failure> {
    Ok(number + 1)
}

#[workflow]
async fn steps(ctx: Ctx, steps: u32) -> Result<u32, Failure> {
    let mut number = 0;
    for _ in 0..steps {
        number = ctx.call(step, number).await?;
    }
    Ok(number)
}

/// What was seen of one way to keep runs.
#[derive(Default)]
struct Seen {
    times: Latencies,
    seconds: f64,
    usage: Usage,
    deleted: u64,
    half: u64,
    whole: u64,
}

pub(crate) async fn run(load: Load, folder: &Path) -> Result<()> {
    let names = ["for ever", "for 1 s"];
    let mut seen = [Seen::default(), Seen::default()];
    for round in 0..load.rounds {
        for (keep, seen) in [None, Some(KEPT)].into_iter().zip(&mut seen) {
            let file = folder.join(format!("retention-{round}-{}.db", keep.is_some()));
            let store = Dacapo::open(&format!("sqlite:{}", file.display())).await?;
            let store = if let Some(time) = keep { store.settings(|app| app.retention(time)) } else { store };
            let app = store.serve((steps, step)).await?;
            measure(load, &app, &file, seen).await?;
            app.stop().await;
            std::fs::remove_file(&file)?;
        }
    }
    for (name, seen) in names.iter().zip(&seen) {
        Line::new("retention", name, (seen.times.count() as u64, "runs"), seen.seconds, &seen.times)
            .used(seen.usage)
            .figure("deleted_per_s", seen.deleted as f64 / seen.seconds)
            .figure("file_mib_half", seen.half as f64 / f64::from(load.rounds) / f64::from(1 << 20))
            .figure("file_mib", seen.whole as f64 / f64::from(load.rounds) / f64::from(1 << 20))
            .print();
    }
    Ok(())
}

async fn measure(load: Load, app: &App, file: &Path, seen: &mut Seen) -> Result<()> {
    let (ended, done) = (Arc::new(AtomicBool::default()), Arc::new(AtomicU64::default()));
    let (before, began) = (Usage::now(), Instant::now());
    let mut workers: JoinSet<dacapo::Result<Vec<Duration>>> = JoinSet::new();
    for _ in 0..load.runs {
        let (app, ended, done) = (app.clone(), ended.clone(), done.clone());
        workers.spawn(async move {
            let mut times = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                let began = Instant::now();
                app.start(steps, STEPS).await?.result().await?;
                times.push(began.elapsed());
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(times)
        });
    }
    tokio::time::sleep(load.time / 2).await;
    seen.half += std::fs::metadata(file)?.len();
    tokio::time::sleep(load.time / 2).await;
    let (completed, kept) = (done.load(Ordering::Relaxed), app.runs().count(&Filter::all()).await?);
    seen.whole += std::fs::metadata(file)?.len();
    seen.deleted += completed.saturating_sub(kept);
    ended.store(true, Ordering::Relaxed);
    while let Some(times) = workers.join_next().await {
        seen.times.extend(times??);
    }
    seen.seconds += began.elapsed().as_secs_f64();
    seen.usage = seen.usage + (Usage::now() - before);
    Ok(())
}
