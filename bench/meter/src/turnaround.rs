//! W4: from start to result, one workflow with one activity after another.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{Latencies, Line, Shape, System, Usage, payload};

/// How long each workflow took, from start to result.
#[derive(Default)]
pub struct Turnaround {
    times: Latencies,
    usage: Usage,
}

impl Turnaround {
    /// Runs one more.
    pub async fn run(&mut self, system: &impl System) -> Result<()> {
        let (number, before) = (self.times.count() as u64, Usage::now());
        let (begun, sent) = (Instant::now(), payload(number));
        let result = system.run(Shape::Chain(1), format!("w4-{number}"), sent.clone()).await?;
        self.times.push(begun.elapsed());
        self.usage = self.usage + before.since();
        ensure!(result == sent, "a workflow came to {result:?} instead of {sent:?}");
        Ok(())
    }

    /// The middle one, in milliseconds.
    pub fn p50(&self) -> f64 {
        self.times.p50()
    }

    /// One that nothing disturbed, in milliseconds.
    pub fn quiet(&self) -> f64 {
        self.times.quiet()
    }

    /// What came of it.
    pub fn line(&self, system: &str) -> Line {
        let n = (self.times.count() as u64, "workflows");
        Line::new("w4", system, n, self.times.seconds(), &self.times).used(self.usage)
    }
}
