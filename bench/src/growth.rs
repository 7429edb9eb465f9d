//! How costs grow: processor time and memory for each item of something small, and of the same ten times as large.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dacapo::prelude::*;
use dacapo::{App, Filter};
use dacapo_bench_meter::{Latencies, Line, Usage};
use futures::future::try_join_all;

const ADD: Signal<u64> = Signal::new("add");
const HOLD: Update<u64, u64> = Update::new("hold");
/// How long an update stays in flight: longer than it takes to send all of them.
const IN_FLIGHT: Duration = Duration::from_secs(3);

#[activity]
async fn echo(number: u64) -> Result<u64, Failure> {
    Ok(number)
}

/// All activities at once.
#[workflow]
async fn joins(ctx: Ctx, items: u64) -> Result<u64, Failure> {
    let all = try_join_all((0..items).map(|number| ctx.call(echo, number))).await?;
    Ok(all.len() as u64)
}

/// A long history, some activities at a time.
#[workflow]
async fn long(ctx: Ctx, items: u64) -> Result<u64, Failure> {
    let mut done = 0;
    while done < items {
        done += try_join_all((0..250.min(items - done)).map(|number| ctx.call(echo, number))).await?.len() as u64;
    }
    Ok(done)
}

#[workflow]
async fn adds(ctx: Ctx, items: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for _ in 0..items {
        sum += ctx.next_signal(ADD).await?;
    }
    Ok(sum)
}

/// Updates that are all in flight for a while.
#[workflow]
async fn holds(ctx: Ctx, items: u64) -> Result<u64, Failure> {
    let answered = ctx.cell(0_u64);
    let (counts, inner) = (answered.clone(), ctx.clone());
    ctx.on_update(
        HOLD,
        |_| Ok(()),
        move |number| {
            let (counts, ctx) = (counts.clone(), inner.clone());
            async move {
                ctx.sleep(IN_FLIGHT).await?;
                counts.update(|answered| *answered += 1);
                Ok(number)
            }
        },
    );
    ctx.wait_until(move || answered.read(|answered| *answered == items)).await?;
    Ok(items)
}

#[workflow]
async fn sleeps(ctx: Ctx) -> Result<(), Failure> {
    Ok(ctx.sleep(hours(1)).await?)
}

/// What grows.
#[derive(Clone, Copy)]
enum Thing {
    Joined,
    Events,
    Signals,
    Updates,
    Runs,
}

impl Thing {
    /// With what it is counted in, and the largest size.
    const ALL: [(Self, &str, u64); 5] = [
        (Self::Joined, "activities joined at once", 10_000),
        (Self::Events, "events of one run", 1_000_000),
        (Self::Signals, "signals to one run", 100_000),
        (Self::Updates, "updates in flight", 10_000),
        (Self::Runs, "runs in the file", 1_000_000),
    ];

    async fn grow(self, app: &App, items: u64) -> Result<()> {
        match self {
            Self::Joined => {
                ensure!(app.start(joins, items).await?.result().await? == items);
            }
            Self::Events => {
                let activities = items / 2;
                ensure!(app.start(long, activities).await?.result().await? == activities);
            }
            Self::Signals => {
                let run = app.start(adds, items).await?;
                try_join_all((0..items).map(|_| run.signal(ADD, 1).into_future())).await?;
                ensure!(run.result().await? == items);
            }
            Self::Updates => {
                let run = app.start(holds, items).await?;
                let updates = (0..items).map(|number| {
                    let run = run.clone();
                    async move { run.update(HOLD, number).await }
                });
                let answers = try_join_all(updates).await?;
                ensure!(answers.iter().sum::<u64>() == items * (items - 1) / 2);
                ensure!(run.result().await? == items);
            }
            Self::Runs => {
                let mut left = items;
                while left > 0 {
                    let some = left.min(2_000);
                    try_join_all((0..some).map(|_| async { app.start(sleeps, ()).await })).await?;
                    left -= some;
                }
                ensure!(app.runs().count(&Filter::open()).await? == items);
            }
        }
        Ok(())
    }
}

/// Measures each thing at a tenth, a fifth, a half and the whole of its largest size; a quick look stops at a thousandth.
pub(crate) async fn run(quick: bool, folder: &Path) -> Result<()> {
    for (thing, unit, largest) in Thing::ALL {
        let largest = if quick { (largest / 1_000).max(20) } else { largest };
        for share in [10, 5, 2, 1] {
            let items = largest / share;
            let file = folder.join("growth.db");
            let store = Dacapo::open(&format!("sqlite:{}", file.display())).await?;
            let app = store.serve((joins, long, adds, holds, sleeps, echo)).await?;
            let (before, began) = (Usage::now(), Instant::now());
            thing.grow(&app, items).await?;
            let (seconds, used) = (began.elapsed().as_secs_f64(), Usage::now() - before);
            let mut times = Latencies::default();
            times.push(Duration::from_secs_f64(seconds / items as f64));
            Line::new("growth", "dacapo", (items, unit), seconds, &times)
                .used(used)
                .figure("cpu_us_each", used.cpu_seconds * 1e6 / items as f64)
                .print();
            app.stop().await;
            for end in ["", "-wal", "-shm", "-lease"] {
                let _ = std::fs::remove_file(format!("{}{end}", file.display()));
            }
        }
    }
    Ok(())
}
