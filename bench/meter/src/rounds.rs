//! W1 and W2: many workflows at once, over and over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use crate::{Latencies, Line, Shape, System, Usage, payload};

/// Rounds of workflows that are started at once, each with so many activities.
pub struct Rounds<S> {
    system: Arc<S>,
    workload: &'static str,
    shape: Shape,
    /// Workflows in a round.
    wide: u32,
    /// Rounds so far.
    count: u64,
    seconds: f64,
    times: Latencies,
    usage: Usage,
}

impl<S: System> Rounds<S> {
    /// None yet.
    pub fn new(system: Arc<S>, workload: &'static str, shape: Shape, wide: u32) -> Self {
        let (times, usage) = (Latencies::default(), Usage::default());
        Self { system, workload, shape, wide, count: 0, seconds: 0.0, times, usage }
    }

    /// Plays one round, from the first start to the last result.
    pub async fn play(&mut self) -> Result<()> {
        let (begun, before) = (Instant::now(), Usage::now());
        let mut runs = JoinSet::new();
        for number in 0..self.wide {
            let (system, shape) = (self.system.clone(), self.shape);
            let number = self.count * u64::from(self.wide) + u64::from(number);
            let id = format!("{}-{number}", self.workload);
            runs.spawn(async move {
                let (begun, sent) = (Instant::now(), payload(number));
                let result = system.run(shape, id, sent.clone()).await?;
                ensure!(result == sent, "a workflow came to {result:?} instead of {sent:?}");
                Ok::<Duration, anyhow::Error>(begun.elapsed())
            });
        }
        while let Some(time) = runs.join_next().await {
            self.times.push(time??);
        }
        self.seconds += begun.elapsed().as_secs_f64();
        self.usage = self.usage + before.since();
        self.count += 1;
        Ok(())
    }

    /// Plays rounds until they have taken so long together: one at least.
    pub async fn play_for(&mut self, time: Duration) -> Result<()> {
        self.play().await?;
        while self.time() < time {
            self.play().await?;
        }
        Ok(())
    }

    /// Runs so many chains without measuring them. A log that grows is dearer to flush than one that is written over, so what is
    /// measured step by step begins when the log has grown.
    pub async fn warm_up(system: Arc<S>, workflows: u32) -> Result<()> {
        Self::new(system, "warm", Shape::Chain(10), workflows).play().await
    }

    /// How long all rounds took.
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// How many workflows were run.
    pub fn workflows(&self) -> u64 {
        self.count * u64::from(self.wide)
    }

    /// What came of it. The times are those of whole workflows, from start to result.
    pub fn line(&self) -> Line {
        let (Shape::Chain(activities) | Shape::Fan(activities)) = self.shape;
        let n = self.workflows() * u64::from(activities);
        Line::new(self.workload, self.system.name(), (n, "activities"), self.seconds, &self.times).used(self.usage)
    }
}
