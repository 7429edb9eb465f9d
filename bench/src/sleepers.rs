//! W6: many workflows that sleep for an hour, and what they cost a process that has not seen them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dacapo_bench_meter::{Line, Size, start_sleepers};

use crate::embedded::{Embedded, file_url};
use crate::kept;
use crate::prototype::{Prototype, Waves};

pub(crate) async fn run(size: &Size, folder: &Path) -> Result<()> {
    let (url, empty) = (file_url(&folder.join("dacapo.db")), file_url(&folder.join("empty.db")));
    let bare = folder.join("prototype.db");
    let mut prototype = Prototype::open(&bare, "w6", Waves { workflows: size.sleepers, steps: 1, rows: 3 })?;
    prototype.play()?;
    let embedded = Arc::new(Embedded::open(&url).await?);
    let line = start_sleepers(embedded.clone(), size.sleepers).await?;
    prototype.play()?;
    embedded.close().await;
    with_fresh_process(line, size.sleepers, size.idle, &url, &empty).await?.print();
    prototype.close(&bare, "starts")?.print();
    Ok(())
}

/// Adds what a process needs that has not seen these sleepers, beside one over an empty store.
pub(crate) async fn with_fresh_process(
    line: Line,
    sleepers: u32,
    idle: Duration,
    url: &str,
    empty: &str,
) -> Result<Line> {
    kept::open(url, u64::from(sleepers)).await?;
    let (with, without) = (fresh_process(url, idle)?, fresh_process(empty, idle)?);
    let per_run = (with.rss_bytes as f64 - without.rss_bytes as f64) / f64::from(sleepers);
    Ok(line
        .figure("fresh_rss_bytes_per_run", per_run)
        .figure("fresh_idle_cpu_ms", with.cpu_seconds * 1e3)
        .figure("fresh_open_ms", with.p50_ms))
}

/// This program, started again to serve a store and do nothing.
fn fresh_process(url: &str, time: Duration) -> Result<Line> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.arg("idle").arg(url).arg(time.as_millis().to_string());
    let output = command.output().context("cannot start a fresh process")?;
    ensure!(output.status.success(), "the fresh process failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the fresh process did not print a line")
}
