//! W3: one workflow of many activities, one after another.

use anyhow::{Result, ensure};

use crate::ticks::{self, Pause};
use crate::{Latencies, Line, Shape, System, Usage, payload};

/// One workflow of so many activities.
pub struct Long {
    /// How many.
    pub steps: u32,
    /// After how many of them there is a pause.
    pub every: usize,
}

/// How long each step took: from one activity to the next.
pub struct Steps {
    steps: u32,
    times: Latencies,
    usage: Usage,
}

impl Long {
    /// Runs it. The pause is not on its clock, but what it uses is, until [`Steps::without`] takes it off.
    pub async fn run(&self, system: &impl System, id: &str, pause: Pause) -> Result<Steps> {
        let (before, sent) = (Usage::now(), payload(u64::from(self.steps)));
        ticks::begin(self.every, pause);
        let result = system.run(Shape::Chain(self.steps), id.to_owned(), sent.clone()).await;
        let mut times = Latencies::default();
        times.extend(ticks::end());
        ensure!(result? == sent, "the long workflow came to something else than it was given");
        ensure!(times.count() + 1 == self.steps as usize, "{} steps of {} were seen", times.count() + 1, self.steps);
        Ok(Steps { steps: self.steps, times, usage: before.since() })
    }
}

impl Steps {
    /// Without what was used for something else meanwhile.
    #[must_use]
    pub fn without(mut self, other: Usage) -> Self {
        self.usage = self.usage - other;
        self
    }

    /// The average step, in milliseconds.
    pub fn mean(&self) -> f64 {
        self.times.mean()
    }

    /// One that nothing disturbed, in milliseconds.
    pub fn quiet(&self) -> f64 {
        self.times.quiet()
    }

    /// What came of it. Tenths are compared by their quiet steps: what grows with the history grows in every step, and what
    /// other programs and the disk do meanwhile is in the slow ones.
    pub fn line(&self, system: &str) -> Line {
        let (first, last) = self.times.tenths();
        let n = (self.times.count() as u64, "steps");
        Line::new(&format!("w3_{}", self.steps), system, n, self.times.seconds(), &self.times)
            .used(self.usage)
            .figure("ms_per_step", self.times.mean())
            .figure("first_tenth_ms", first.quiet())
            .figure("last_tenth_ms", last.quiet())
    }
}
