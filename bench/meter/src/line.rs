//! The one line that a measurement prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::usage::rss_bytes;
use crate::{Latencies, Usage};

/// What was measured: one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// `w1` to `w6`.
    pub workload: String,
    /// `dacapo`, `bare_commit`, `prototype`, or a rival.
    pub system: String,
    /// How many of what `unit` names.
    pub n: u64,
    /// What is counted.
    pub unit: String,
    /// In how much time.
    pub seconds: f64,
    /// How many in a second.
    pub throughput: f64,
    /// The middle of what each took, in milliseconds.
    pub p50_ms: f64,
    /// What 99 of 100 did not exceed.
    pub p99_ms: f64,
    /// Processor time.
    pub cpu_seconds: f64,
    /// Flushes.
    pub fsyncs: u64,
    /// Bytes handed to the disk.
    pub write_bytes: u64,
    /// Bytes of the process in memory when it was done.
    pub rss_bytes: u64,
    /// What only this workload or system has to say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

impl Line {
    /// So many of these, in this time, with each of them (or of the whole they are part of) taking so long.
    pub fn new(workload: &str, system: &str, (n, unit): (u64, &str), seconds: f64, times: &Latencies) -> Self {
        Self {
            workload: workload.to_owned(),
            system: system.to_owned(),
            n,
            unit: unit.to_owned(),
            seconds,
            throughput: n as f64 / seconds,
            p50_ms: times.p50(),
            p99_ms: times.p99(),
            cpu_seconds: 0.0,
            fsyncs: 0,
            write_bytes: 0,
            rss_bytes: rss_bytes(),
            figures: BTreeMap::new(),
        }
    }

    /// With what it took from the machine.
    #[must_use]
    pub fn used(mut self, usage: Usage) -> Self {
        (self.cpu_seconds, self.fsyncs, self.write_bytes) = (usage.cpu_seconds, usage.fsyncs, usage.write_bytes);
        self
    }

    /// With one more figure.
    #[must_use]
    pub fn figure(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }

    /// Prints it.
    pub fn print(&self) {
        println!("{}", serde_json::to_string(self).expect("numbers and names can be written"));
    }
}
