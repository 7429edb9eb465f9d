//! A process that serves a store and has nothing to do.

use std::time::{Duration, Instant};

use anyhow::Result;
use dacapo_bench_meter::{Latencies, Line, Usage};

use crate::embedded::Embedded;

/// Serves a store, waits, and says what the waiting took and how much memory there is then. The one time is that of opening.
pub(crate) async fn watch(url: &str, time: Duration) -> Result<()> {
    let begun = Instant::now();
    let embedded = Embedded::open(url).await?;
    let mut opening = Latencies::default();
    opening.push(begun.elapsed());
    let before = Usage::now();
    std::thread::sleep(time);
    Line::new("idle", "dacapo", (0, "nothing"), time.as_secs_f64(), &opening).used(before.since()).print();
    embedded.close().await;
    Ok(())
}
