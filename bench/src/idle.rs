//! A process that serves a file and has nothing to do.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use dacapo_bench_meter::{Latencies, Line, Usage};

use crate::embedded::Embedded;

/// Serves a file, waits, and says what the waiting took and how much memory there is then. The one time is that of opening.
pub(crate) async fn watch(file: &str, time: Duration) -> Result<()> {
    let begun = Instant::now();
    let embedded = Embedded::open(Path::new(file)).await?;
    let mut opening = Latencies::default();
    opening.push(begun.elapsed());
    let before = Usage::now();
    std::thread::sleep(time);
    Line::new("idle", "dacapo", (0, "nothing"), time.as_secs_f64(), &opening).used(before.since()).print();
    embedded.close().await;
    Ok(())
}
