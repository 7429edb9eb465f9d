//! Workers that are killed, and those that go on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dacapo::prelude::*;
use dacapo_examples::fan_out::{Work, count_all};

use crate::{Namespace, wait, within};

/// A worker of the examples, in a process of its own.
pub(crate) struct Process(Child);

impl Process {
    fn start(url: &str) -> Self {
        Self::start_with(url, &[])
    }

    /// Starts one with these variables.
    pub(crate) fn start_with(url: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serve"));
        command.arg(url).envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut process = Self(command.spawn().expect("it starts"));
        let output = process.0.stdout.take().expect("it is piped");
        let line = BufReader::new(output).lines().next();
        assert!(matches!(&line, Some(Ok(line)) if line == "serving"), "{line:?}");
        process
    }
}

/// `kill -9`.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_whose_workers_are_killed_ends_with_its_result() {
    let namespace = Namespace::new();
    let client = Dacapo::connect(&namespace.url).await.unwrap();
    let run = client.start(count_all, Work { parts: 60, at_once: 4 }).id("count").await.unwrap();
    for kill in 1..=3 {
        let worker = Process::start(&namespace.url);
        let done = || namespace.event_types("count").iter().filter(|event| *event == "ACTIVITY_TASK_COMPLETED").count();
        wait("it goes on", async || (done() >= 10 * kill).then_some(())).await;
        drop(worker);
        assert!(run.describe().await.unwrap().status.is_open(), "kill {kill} comes when there is work left");
    }
    let _last = Process::start(&namespace.url);
    assert_eq!(within("it ends", run.result()).await, Ok((0..60).sum()));
    let recorded = namespace.event_types("count").iter().filter(|event| *event == "ACTIVITY_TASK_COMPLETED").count();
    assert_eq!(recorded, 60, "each result is recorded once");
}
