//! `bench --temporal`: our worker beside the one of Temporal's own SDK, on one server and in turns.
//!
//! Each round has a new server, in memory, which both workers use: A B, then B A, and so on, workload by workload. A worker is a process
//! with a queue of its own. The caller is another process, the same program for both, so that the figures of the workers are theirs alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::ratio::Ratio;
use super::{Options, Program};
use crate::temporal::{Server, Tools};

/// The rounds, unless `--rounds` says otherwise.
pub(super) const ROUNDS: usize = 10;

/// Both workers and the caller, in one build.
pub(super) const PROGRAM: Program = Program {
    name: "temporal",
    folder: "bench/rivals/temporal",
    package: "dacapo-bench-temporal",
    features: &[],
    args: &[],
};

const WORKLOADS: [&str; 3] = ["w1", "w2", "w4"];

const OURS: &str = "dacapo";
const OFFICIAL: &str = "temporalio-sdk";

/// By default these limits are the bound, whichever worker serves: a server reads its own queues 20 times in a second, so that each workflow
/// task of a lone workflow waits for 50 ms.
const UNLIMITED: &[&str] = &[
    "frontend.rps=100000",
    "frontend.namespaceRPS=100000",
    "frontend.persistenceMaxQPS=100000",
    "history.rps=100000",
    "history.persistenceMaxQPS=100000",
    "history.transferProcessorMaxPollRPS=100000",
    "matching.rps=100000",
    "matching.persistenceMaxQPS=100000",
];

/// The server is the bound where it uses more of the processor time than this.
const SERVER_BOUND: f64 = 0.5;

/// The line of a measurement, as far as it is compared.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    n: f64,
    seconds: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Of the caller.
    cpu_seconds: f64,
    figures: Processes,
}

/// The processor time of the other two processes.
#[derive(Clone, Debug, Deserialize)]
struct Processes {
    worker_cpu_seconds: f64,
    server_cpu_seconds: f64,
}

/// The measurements of both workers in one round.
#[derive(Clone, Debug)]
struct Pair {
    ours: Line,
    official: Line,
}

type Value = fn(&Line) -> f64;

pub(super) fn run(root: &Path, options: &Options) -> Result<()> {
    PROGRAM.build(root)?;
    let tools = Tools::get(root)?;
    let folder = root.join("target/bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut log = File::create(folder.join("temporal.jsonl"))?;
    let mut pairs: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
    for round in 1..=options.runs {
        let server = Server::start(&tools, UNLIMITED)?;
        for workload in WORKLOADS.into_iter().filter(|workload| options.includes(workload)) {
            println!("round {round} of {}: {workload}", options.runs);
            let mut measure = |system| measure(root, &server, system, workload, options.quick, &mut log);
            let pair = match round % 2 == 1 {
                true => Pair { ours: measure(OURS)?, official: measure(OFFICIAL)? },
                false => {
                    let official = measure(OFFICIAL)?;
                    Pair { ours: measure(OURS)?, official }
                }
            };
            pairs.entry(workload).or_default().push(pair);
        }
    }
    println!("\nbench: {OURS} beside {OFFICIAL}, {} rounds\n\n{}", options.runs, table(&pairs));
    let missed: Vec<String> = pairs.iter().filter_map(|(workload, pairs)| missed(workload, pairs)).collect();
    ensure!(missed.is_empty(), "bench: the bar is not met: {}", missed.join("; "));
    Ok(())
}

/// Starts a worker, runs one workload on it, and ends the worker. All lines are kept in a file.
fn measure(root: &Path, server: &Server, system: &str, workload: &str, quick: bool, log: &mut File) -> Result<Line> {
    let address = format!("127.0.0.1:{}", server.port());
    let queue = format!("{workload}-{system}");
    let place = ["--address", &address, "--namespace", "default", "--queue", &queue];
    let worker = Worker::start(Command::new(PROGRAM.executable(root)).args(["serve", system]).args(place), system)?;
    let mut caller = Command::new(PROGRAM.executable(root));
    caller.args(["drive", workload, "--system", system]).args(place).args(quick.then_some("--quick"));
    caller.args(["--worker", &worker.process.id().to_string(), "--server", &server.pid().to_string()]);
    let output = caller.output().with_context(|| format!("cannot start {}", PROGRAM.package))?;
    ensure!(output.status.success(), "{workload} on {system}: {}", String::from_utf8_lossy(&output.stderr));
    worker.stop()?;
    log.write_all(&output.stdout)?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("cannot read the line of {workload} on {system}"))
}

/// A worker's process. It ends with this value.
struct Worker {
    process: Child,
    system: String,
}

impl Worker {
    /// Starts it and waits until it says that it serves.
    fn start(command: &mut Command, system: &str) -> Result<Self> {
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let process = process.with_context(|| format!("cannot start the worker of {system}"))?;
        let mut worker = Self { process, system: system.to_owned() };
        let mut line = String::new();
        let output = worker.process.stdout.take().context("the worker has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line.trim() == "serving", "the worker of {system} does not serve: it printed {line:?}");
        Ok(worker)
    }

    /// Closes its input and waits until it has ended.
    fn stop(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        let status = self.process.wait()?;
        match status.success() {
            true => Ok(()),
            false => bail!("the worker of {} failed at its end: {status}", self.system),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Activities in a second. W4 has one in each workflow.
fn throughput(line: &Line) -> f64 {
    line.n / line.seconds
}

/// The worker's processor time for each activity, in microseconds.
fn worker_cpu(line: &Line) -> f64 {
    line.figures.worker_cpu_seconds * 1e6 / line.n
}

/// The processor time of worker, server and caller.
fn all_cpu(line: &Line) -> f64 {
    line.figures.worker_cpu_seconds + line.figures.server_cpu_seconds + line.cpu_seconds
}

fn server_share(line: &Line) -> f64 {
    line.figures.server_cpu_seconds / all_cpu(line)
}

/// The rows of a workload, in order.
fn rows(workload: &str) -> Vec<(&'static str, Value)> {
    let mut rows: Vec<(&str, Value)> = vec![("activities/s", throughput)];
    if workload == "w4" {
        rows.push(("p50 from start to result, ms", |line| line.p50_ms));
        rows.push(("p99 from start to result, ms", |line| line.p99_ms));
    }
    rows.push(("worker: processor time per activity, µs", worker_cpu));
    rows.push(("server: processor time per activity, µs", |line| line.figures.server_cpu_seconds * 1e6 / line.n));
    rows.push(("server: share of the processor time, %", |line| 100.0 * server_share(line)));
    rows.push(("processors in use", |line| all_cpu(line) / line.seconds));
    rows
}

fn table(pairs: &BTreeMap<&str, Vec<Pair>>) -> String {
    let mut text = format!("| median of the rounds | {OURS} | {OFFICIAL} | ratio (95 %) |\n|---|---|---|---|\n");
    for (workload, pairs) in pairs {
        for (name, value) in rows(workload) {
            let (ours, official) =
                (median(pairs, |pair| value(&pair.ours)), median(pairs, |pair| value(&pair.official)));
            let ratio = ratio(pairs, value);
            text += &format!("| {}: {name} | {ours:.2} | {official:.2} | {ratio} |\n", workload.to_uppercase());
        }
    }
    text
}

fn median(pairs: &[Pair], value: impl Fn(&Pair) -> f64) -> f64 {
    let mut values: Vec<f64> = pairs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    if values.len() % 2 == 1 { values[upper] } else { f64::midpoint(values[upper - 1], values[upper]) }
}

/// Ours to the official one.
fn ratio(pairs: &[Pair], value: Value) -> Ratio {
    Ratio::of(pairs.iter().map(|pair| (value(&pair.official), value(&pair.ours))))
}

/// Why a workload does not meet the bar: the interval of the throughput's ratio reaches 1, or the server is the bound and our worker uses
/// less processor time.
fn missed(workload: &str, pairs: &[Pair]) -> Option<String> {
    let (throughput, cpu) = (ratio(pairs, throughput), ratio(pairs, worker_cpu));
    let share = median(pairs, |pair| server_share(&pair.ours));
    let is_met = throughput.high >= 1.0 || (share > SERVER_BOUND && cpu.high < 1.0);
    (!is_met).then(|| {
        format!(
            "{workload}: throughput {throughput}, processor time {cpu}, the server's share is {:.0} %",
            100.0 * share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seconds: f64, worker: f64, server: f64) -> Line {
        let figures = Processes { worker_cpu_seconds: worker, server_cpu_seconds: server };
        Line { n: 100.0, seconds, p50_ms: 5.0, p99_ms: 9.0, cpu_seconds: 0.1, figures }
    }

    /// Three rounds, in which our worker takes so many times the time and the processor time of the official one.
    fn pairs(time: f64, cpu: f64, server: f64) -> Vec<Pair> {
        let pair = |of: f64| Pair { ours: line(time * of, cpu * of, server), official: line(of, of, server) };
        vec![pair(1.0), pair(1.2), pair(1.1)]
    }

    #[test]
    fn workload_misses_the_bar_when_it_is_slower_and_the_server_is_no_excuse() {
        assert_eq!(missed("w1", &pairs(0.9, 1.2, 0.1)), None);
        assert_eq!(missed("w1", &pairs(1.1, 0.9, 5.0)), None);
        assert!(missed("w1", &pairs(1.1, 0.9, 0.1)).is_some());
        let text = missed("w1", &pairs(1.25, 2.0, 5.0)).unwrap();
        let expected =
            "w1: throughput 0.800 (0.800 to 0.800), processor time 2.000 (2.000 to 2.000), the server's share is 68 %";
        assert_eq!(text, expected);
    }

    #[test]
    fn table_shows_medians_and_ratios_of_ours_to_the_official_worker() {
        let text = table(&BTreeMap::from([("w4", pairs(0.5, 2.0, 1.0))]));
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows[0], "| W4: activities/s | 181.82 | 90.91 | 2.000 (2.000 to 2.000) |");
        assert_eq!(rows[1], "| W4: p50 from start to result, ms | 5.00 | 5.00 | 1.000 (1.000 to 1.000) |");
        assert_eq!(
            rows[3],
            "| W4: worker: processor time per activity, µs | 22000.00 | 11000.00 | 2.000 (2.000 to 2.000) |"
        );
        assert_eq!(rows.len(), 7);
    }

    #[test]
    fn median_of_an_even_number_of_rounds_is_between_the_two_in_the_middle() {
        let even: Vec<Pair> = pairs(1.0, 1.0, 1.0).into_iter().take(2).collect();
        assert!((median(&even, |pair| pair.ours.seconds) - 1.1).abs() < 1e-9);
    }
}
