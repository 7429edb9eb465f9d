//! `repeat`: runs test suites many times in a row, on a busy machine if asked to, and stops at the first failure.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;
use crate::process::{self, Ended};

const HELP: &str = "repeat takes suites (PACKAGE/TEST or PACKAGE), --times N (50), --loaded, --limit SECONDS of one run (600), \
     and after `--` arguments for the tests";

/// The suites whose outcome depends on threads and on time.
const SUITES: [&str; 3] = ["dacapo/threads", "dacapo-engine/engine", "dacapo-worker/worker"];

#[derive(Debug, PartialEq, Eq)]
struct Options {
    suites: Vec<String>,
    times: usize,
    loaded: bool,
    limit: u64,
    arguments: Vec<String>,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    for suite in &options.suites {
        println!("repeat: building {suite}");
        let status = cargo::command(root).args(["test", "--no-run", "--quiet"]).args(words_of(suite)).status();
        ensure!(status.context("cannot start cargo")?.success(), "repeat: {suite} does not build");
    }
    let _load = options.loaded.then(Load::start);
    let began = Instant::now();
    for time in 1..=options.times {
        for suite in &options.suites {
            run_once(root, suite, &options)
                .with_context(|| format!("repeat: {suite} failed in run {time} of {}", options.times))?;
        }
        println!("repeat: {time} of {} passed, {} s", options.times, began.elapsed().as_secs());
    }
    println!("repeat: {} passed {} times in a row", options.suites.join(", "), options.times);
    Ok(())
}

fn run_once(root: &Path, suite: &str, options: &Options) -> Result<()> {
    let log = root.join("target/repeat.log");
    let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = cargo::command(root);
    command.args(["test", "--quiet"]).args(words_of(suite)).arg("--").args(&options.arguments);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let ended = process::run(&mut command, Duration::from_secs(options.limit), |_| {})?;
    if ended.is_success() {
        return Ok(());
    }
    println!("{}", fs::read_to_string(&log).unwrap_or_default());
    match ended {
        Ended::ByItself(status) => bail!("the tests failed ({status}), their output is above"),
        Ended::Killed => bail!("the tests took longer than {} s and were killed, their output is above", options.limit),
    }
}

/// `dacapo/threads` as arguments of cargo.
fn words_of(suite: &str) -> Vec<&str> {
    match suite.split_once('/') {
        Some((package, test)) => vec!["--package", package, "--test", test],
        None => vec!["--package", suite, "--tests"],
    }
}

impl Options {
    fn parse(mut words: &[&str]) -> Result<Self> {
        let mut options = Self { suites: Vec::new(), times: 50, loaded: false, limit: 600, arguments: Vec::new() };
        loop {
            words = match words {
                [] => break,
                ["--times", times, rest @ ..] => {
                    options.times = times.parse().with_context(|| format!("invalid number `{times}`: {HELP}"))?;
                    rest
                }
                ["--limit", limit, rest @ ..] => {
                    options.limit = limit.parse().with_context(|| format!("invalid number `{limit}`: {HELP}"))?;
                    rest
                }
                ["--loaded", rest @ ..] => {
                    options.loaded = true;
                    rest
                }
                ["--", rest @ ..] => {
                    options.arguments = rest.iter().map(|word| (*word).to_owned()).collect();
                    break;
                }
                [option, ..] if option.starts_with("--") => bail!("unknown option `{option}`: {HELP}"),
                [suite, rest @ ..] => {
                    options.suites.push((*suite).to_owned());
                    rest
                }
            }
        }
        if options.suites.is_empty() {
            options.suites = SUITES.map(str::to_owned).to_vec();
        }
        Ok(options)
    }
}

/// Threads that keep every core busy until this is dropped.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        let spin = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..cores).map(|_| std::thread::spawn(spin(stop.clone()))).collect();
        println!("repeat: {cores} threads keep all cores busy");
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_which_suites_are_repeated_how_often() {
        let options = Options::parse(&["a/b", "--times", "3", "--loaded", "--", "one", "--nocapture"]).unwrap();
        let arguments = vec!["one".to_owned(), "--nocapture".to_owned()];
        assert_eq!(options, Options { suites: vec!["a/b".into()], times: 3, loaded: true, limit: 600, arguments });
        assert_eq!(Options::parse(&[]).unwrap().suites, SUITES);
        Options::parse(&["--time", "3"]).unwrap_err();
    }

    #[test]
    fn suite_is_a_package_or_one_test_of_it() {
        assert_eq!(words_of("dacapo/threads"), ["--package", "dacapo", "--test", "threads"]);
        assert_eq!(words_of("dacapo-store"), ["--package", "dacapo-store", "--tests"]);
    }

    #[test]
    fn load_ends_when_it_is_dropped() {
        let load = Load::start();
        let stop = load.stop.clone();
        assert!(!load.threads.is_empty());
        drop(load);
        assert!(stop.load(Ordering::Relaxed));
    }
}
