//! W6: many workflows that sleep.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::{Latencies, Line, System, Usage, payload};

/// Starts so many workflows that sleep for an hour, all at once. The times are those of single starts.
pub async fn start_sleepers(system: Arc<impl System>, sleepers: u32) -> Result<Line> {
    let (begun, before) = (Instant::now(), Usage::now());
    let mut starts = JoinSet::new();
    for number in 0..sleepers {
        let system = system.clone();
        starts.spawn(async move {
            let begun = Instant::now();
            system.start_sleeper(format!("w6-{number}"), payload(u64::from(number))).await?;
            Ok::<Duration, anyhow::Error>(begun.elapsed())
        });
    }
    let mut times = Latencies::default();
    while let Some(time) = starts.join_next().await {
        times.push(time??);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let n = (u64::from(sleepers), "starts");
    Ok(Line::new("w6", system.name(), n, seconds, &times).used(before.since()))
}
