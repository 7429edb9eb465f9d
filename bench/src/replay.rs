//! W5: a long run that is not in memory answers a question, for which it is played again from what is kept.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dacapo_bench_meter::{Latencies, Line, Size, Usage, payload};

use crate::embedded::Embedded;
use crate::kept;
use crate::programs::{SEEN, asked};

/// How long the history may take to be made, and a run to come to rest.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) async fn run(size: &Size, url: &str) -> Result<()> {
    let (activities, times) = size.history;
    let embedded = Embedded::open(url).await?;
    let run = embedded.app.start(asked, (activities, payload(5))).id("w5").await?;
    let began = Instant::now();
    while run.query(SEEN, ()).await? < activities {
        ensure!(began.elapsed() < LIMIT, "the run has not come to its activity {activities} after {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut replays = Latencies::default();
    let before = Usage::now();
    for _ in 0..times {
        // It comes to rest a moment after it has answered.
        let resting = Instant::now();
        while embedded.app.runs_in_memory() > 0 {
            ensure!(resting.elapsed() < LIMIT, "the run cannot be evicted after {LIMIT:?}");
            embedded.app.evict_idle();
            tokio::task::yield_now().await;
        }
        let begun = Instant::now();
        let seen = run.query(SEEN, ()).await?;
        replays.push(begun.elapsed());
        ensure!(seen == activities, "the run was played to its activity {seen} of {activities}");
    }
    let usage = before.since();
    embedded.close().await;
    kept::open(url, 1).await?;
    kept::whole(url).await?;
    // An activity is two events: it was scheduled, and it was completed.
    let events = u64::from(activities) * 2;
    let n = (events * u64::from(times), "events");
    let line = Line::new("w5", "dacapo", n, replays.seconds(), &replays).used(usage);
    line.figure("history_events", events as f64).print();
    Ok(())
}
