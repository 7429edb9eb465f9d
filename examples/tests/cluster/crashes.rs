//! Workers that are killed, and those that go on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dacapo::prelude::*;
use dacapo_examples::fan_out::{Work, count_all};

use crate::{Namespace, told, within};

/// A worker of the examples, in a process of its own.
struct Process(Child);

impl Process {
    fn start(url: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_serve");
        let mut process = Self(Command::new(program).arg(url).stdout(Stdio::piped()).spawn().expect("it starts"));
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
        let more = 40 * kill;
        told("it goes on", &run, |history| history.len() > more).await;
        drop(worker);
    }
    let _last = Process::start(&namespace.url);
    assert_eq!(within("it ends", run.result()).await, Ok((0..60).sum()));
    let recorded = namespace.event_types("count").iter().filter(|event| *event == "ACTIVITY_TASK_COMPLETED").count();
    assert_eq!(recorded, 60, "each result is recorded once");
}
