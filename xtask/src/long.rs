//! `long`: what takes too long for every commit. Soaks, crashes, million-item tests, builds of the published archives and
//! benchmarks, each within a time limit.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{self, Ended};
use crate::{bench, cargo};

const HELP: &str = "long takes any of soak, crash, million, package, bench, temporal, nodes, postgres (all of them by default), and --minutes N for the soaks (20)";

/// How many runs the nodes have to complete: 100,000 in 20 minutes.
const RUNS_A_MINUTE: u64 = 5_000;

/// One command of a group.
struct Job {
    group: &'static str,
    what: &'static str,
    program: Program,
    env: &'static [(&'static str, &'static str)],
    /// Minutes after which it has failed.
    limit: u64,
}

enum Program {
    /// `cargo test --release` with these words.
    Test(&'static [&'static str]),
    /// The bench program with these words.
    Bench(&'static [&'static str]),
    /// This program with these words.
    Xtask(&'static [&'static str]),
}

use Program::{Bench, Test, Xtask};

const JOBS: &[Job] = &[
    Job {
        group: "soak",
        what: "load, kills, evictions, retention and backups at once",
        program: Test(&["-p", "dacapo-examples", "--test", "soak", "--", "--nocapture"]),
        env: &[],
        limit: 15,
    },
    Job {
        group: "crash",
        what: "every example, killed at every moment",
        program: Test(&["-p", "dacapo-examples", "--test", "crash_sweep"]),
        env: &[],
        limit: 30,
    },
    Job {
        group: "crash",
        what: "processes killed 1,000 times at random moments",
        program: Test(&[
            "-p",
            "dacapo-examples",
            "--test",
            "kill",
            "work_of_a_process_killed_at_random_moments",
            "--",
            "--nocapture",
        ]),
        env: &[("DACAPO_KILLS", "1000")],
        limit: 30,
    },
    Job {
        group: "crash",
        what: "power losses and failing disks",
        program: Test(&["-p", "dacapo-sqlite", "-p", "dacapo-testkit", "--tests"]),
        env: &[],
        limit: 30,
    },
    Job {
        group: "million",
        what: "a million choices in one run",
        program: Test(&["-p", "dacapo-engine", "--test", "choices"]),
        env: &[],
        limit: 15,
    },
    Job {
        group: "million",
        what: "a million generated programs",
        program: Test(&["-p", "dacapo-core", "--test", "properties"]),
        env: &[("DACAPO_PROGRAMS", "1000000"), ("PROPTEST_CASES", "5000")],
        limit: 120,
    },
    Job {
        group: "million",
        what: "what each item costs as things grow",
        program: Bench(&["growth"]),
        env: &[],
        limit: 60,
    },
    Job {
        group: "package",
        what: "published crates, built from their archives",
        program: Xtask(&["package", "--verify"]),
        env: &[],
        limit: 30,
    },
    Job { group: "bench", what: "six workloads", program: Bench(&[]), env: &[], limit: 30 },
    Job {
        group: "bench",
        what: "full load with and without retention",
        program: Bench(&["retention"]),
        env: &[],
        limit: 30,
    },
    Job { group: "bench", what: "healthy runs beside bad ones", program: Bench(&["company"]), env: &[], limit: 30 },
    Job {
        group: "temporal",
        what: "our worker beside that of Temporal's own SDK",
        program: Xtask(&["bench", "--temporal"]),
        env: &[],
        limit: 90,
    },
    // This test starts a server of its own, because it kills it.
    Job {
        group: "nodes",
        what: "three nodes on one PostgreSQL server, killed, stopped and cut off",
        program: Test(&["-p", "dacapo-examples", "--features", "postgres", "--test", "nodes", "--", "--nocapture"]),
        env: &[],
        limit: 15,
    },
    Job {
        group: "postgres",
        what: "the workloads on one PostgreSQL server",
        program: Xtask(&["bench", "--postgres"]),
        env: &[],
        limit: 60,
    },
];

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let (groups, minutes) = parse(words)?;
    let jobs: Vec<&Job> = JOBS.iter().filter(|job| groups.is_empty() || groups.contains(&job.group)).collect();
    let mut lines = Vec::new();
    let mut failed = 0;
    for (number, job) in (1..).zip(&jobs) {
        println!("\n==== {number} of {}: {}: {}", jobs.len(), job.group, job.what);
        let began = Instant::now();
        let outcome = job.run(root, minutes);
        let taken = began.elapsed().as_secs();
        failed += usize::from(outcome.is_err());
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        lines.push(format!("  {word:<7} {:<8} {:<54} {taken:>5} s", job.group, job.what));
        if let Err(error) = outcome {
            println!("{error:#}");
        }
    }
    println!("\n==== long: summary\n{}", lines.join("\n"));
    ensure!(failed == 0, "long: {failed} of {} jobs failed", jobs.len());
    Ok(())
}

/// The groups to run, all if none is named, and how many minutes a soak lasts.
fn parse<'a>(mut words: &[&'a str]) -> Result<(Vec<&'a str>, u64)> {
    let (mut groups, mut minutes) = (Vec::new(), 20);
    loop {
        words = match words {
            [] => return Ok((groups, minutes)),
            ["--minutes", given, rest @ ..] => {
                let Ok(given) = given.parse() else { bail!("invalid number of minutes `{given}`: {HELP}") };
                minutes = given;
                rest
            }
            [group, rest @ ..] if JOBS.iter().any(|job| job.group == *group) => {
                groups.push(*group);
                rest
            }
            [other, ..] => bail!("unknown word `{other}`: {HELP}"),
        }
    }
}

impl Job {
    fn run(&self, root: &Path, minutes: u64) -> Result<()> {
        let (mut command, mut limit) = (self.command(root)?, self.limit);
        command.envs(self.env.iter().copied());
        if ["soak", "nodes"].contains(&self.group) {
            command.env("DACAPO_SOAK_SECONDS", (minutes * 60).to_string());
            limit += minutes;
        }
        if self.group == "nodes" {
            command.env("DACAPO_SOAK_RUNS", (minutes * RUNS_A_MINUTE).to_string());
        }
        let progress =
            |taken: Duration| println!("  … {}: {} s of at most {} s", self.group, taken.as_secs(), limit * 60);
        match process::run(&mut command, Duration::from_secs(limit * 60), progress)? {
            Ended::ByItself(status) if status.success() => Ok(()),
            Ended::ByItself(status) => bail!("{} failed ({status})", self.group),
            Ended::Killed => bail!("{} was killed: it took longer than {limit} minutes", self.group),
        }
    }

    fn command(&self, root: &Path) -> Result<Command> {
        match self.program {
            Test(words) => {
                // A build takes as long as it takes, and is not on the job's clock.
                let own = words.iter().take_while(|word| **word != "--");
                let built = cargo::command(root).args(["test", "--release", "--no-run"]).args(own).status();
                ensure!(built.context("cannot start cargo")?.success(), "{} does not build", self.group);
                let mut command = cargo::command(root);
                command.args(["test", "--release"]).args(words);
                Ok(command)
            }
            Xtask(words) => {
                let mut command = cargo::command(root);
                command.arg("xtask").args(words);
                Ok(command)
            }
            Bench(words) => {
                bench::build(root)?;
                let mut command = Command::new(bench::executable(root));
                command.current_dir(root).args(words);
                Ok(command)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_minutes_are_read_and_unknown_words_refused() {
        assert_eq!(parse(&["soak", "--minutes", "2", "crash"]).unwrap(), (vec!["soak", "crash"], 2));
        assert_eq!(parse(&[]).unwrap(), (vec![], 20));
        parse(&["soaks"]).unwrap_err();
        parse(&["--minutes", "two"]).unwrap_err();
    }

    #[test]
    fn tests_that_are_run_exist() {
        let tree = crate::tree::Tree::load(&crate::root()).unwrap();
        for job in JOBS {
            let Test(words) = job.program else { continue };
            for pair in words.windows(2).filter(|pair| pair[0] == "--test") {
                let ends = [format!("tests/{}.rs", pair[1]), format!("tests/{}/main.rs", pair[1])];
                assert!(tree.files().any(|source| ends.iter().any(|end| source.path.ends_with(end))), "{}", pair[1]);
            }
            // A word before `--` that is no option and follows none chooses tests by their names.
            let before = words.iter().take_while(|word| **word != "--").copied().collect::<Vec<_>>();
            for pair in before.windows(2).filter(|pair| !pair[0].starts_with('-') && !pair[1].starts_with('-')) {
                let name = format!("fn {}", pair[1]);
                assert!(tree.files().any(|source| source.text.contains(&name)), "no test begins with {}", pair[1]);
            }
        }
    }
}
