//! Workers that are killed, and those that go on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dacapo::prelude::*;
use dacapo_examples::busy::{AWAIT, busy};
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

/// The workers are killed while a local activity and a side effect run, a timer runs and an update is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_whose_workers_are_killed_amid_work_of_all_kinds_ends_with_its_result() {
    let namespace = Namespace::new();
    let client = Dacapo::connect(&namespace.url).await.unwrap();
    let run = client.start(busy, 3).id("busy").await.unwrap();
    let updating = tokio::spawn({
        let run = run.clone();
        async move { run.update(AWAIT, 10).accepted().await }
    });
    let worker = Process::start(&namespace.url);
    let update = within("it is accepted", updating).await.unwrap().unwrap();
    drop(worker);
    let count = |kind: &str| namespace.event_types("busy").iter().filter(|event| *event == kind).count();
    for kill in 1..=2 {
        let worker = Process::start(&namespace.url);
        // A short timer goes before each piece of work.
        wait("it goes on", async || (count("TIMER_FIRED") >= kill).then_some(())).await;
        drop(worker);
        assert!(run.describe().await.unwrap().status.is_open(), "kill {kill} comes when there is work left");
    }
    let _last = Process::start(&namespace.url);
    assert_eq!(within("it ends", run.result()).await, Ok(6));
    assert_eq!(within("it is answered", update.answer()).await, Ok(16));
    assert_eq!(count("MARKER_RECORDED"), 6, "each result is recorded once");
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
