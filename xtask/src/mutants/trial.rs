//! Runs the tests of some packages against a broken tree, within a time limit.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use dacapo_test_postgres::SHARED_DATABASE;

use super::results::Outcome;
use super::{packages, tool};
use crate::cargo;
use crate::process::{self, Ended};

/// Few cases, always the same ones, without shrinking or notes for later: the question is only whether a test fails.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PROPTEST_CASES", "32"),
    ("PROPTEST_RNG_SEED", "1"),
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
    ("RUST_BACKTRACE", "0"),
];

/// A test that compiles programs of its own, for a minute, and looks at no code that a mutant changes.
const SKIPPED: &str = "mistakes_do_not_compile_and_say_what_to_do";

/// Arguments that leave out what does not help to find mutants.
fn arguments(nextest: bool) -> Vec<String> {
    match nextest {
        // One failure is enough: a test that hangs meanwhile is not waited for.
        true => ["--max-fail", "1:immediate", "--no-tests", "pass", "-E", &format!("not test({SKIPPED})")]
            .map(str::to_owned)
            .to_vec(),
        false => ["--", "--skip", SKIPPED].map(str::to_owned).to_vec(),
    }
}

/// Seconds that a build may take.
const BUILD: u64 = 900;

/// How tests are run.
pub(super) struct Rules<'r> {
    /// Seconds that they may take.
    pub(super) limit: u64,
    /// The PostgreSQL database for those that need one.
    pub(super) database: Option<&'r str>,
}

/// The outcome, and the failed tests or the first error of the compiler.
pub(super) fn run(
    folder: &Path,
    packages: &[String],
    filter: Option<&str>,
    rules: &Rules<'_>,
) -> Result<(Outcome, String)> {
    let limit = rules.limit;
    let log = folder.join("target/trial.log");
    fs::create_dir_all(folder.join("target"))?;
    let nextest = tool::has_nextest(folder);
    let words: &[&str] = if nextest { &["nextest", "run", "--color", "never"] } else { &["test", "--tests"] };
    let command = |more: &[&str]| {
        let mut command = cargo::command(folder);
        cargo::forget_target_folder(&mut command);
        command.args(words).args(packages.iter().flat_map(|package| ["--package", package]));
        command.args(packages::features_on_a_server(packages).iter().flat_map(|feature| ["--features", feature]));
        command.args(more).envs(rules.database.map(|url| (SHARED_DATABASE, url)));
        command.envs(ENVIRONMENT.iter().copied()).env_remove("UPDATE_EXPECT");
        command
    };
    if !finish(&mut command(&["--no-run"]), &log, BUILD)?.unwrap_or(false) {
        return Ok((Outcome::Unviable, first_error(&fs::read_to_string(&log)?)));
    }
    let mut more = arguments(nextest);
    more.extend(filter.map(str::to_owned));
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let ended = finish(&mut command(&more), &log, limit)?;
    let failed = failed_tests(&fs::read_to_string(&log)?);
    Ok(match ended {
        Some(true) => (Outcome::Missed, String::new()),
        Some(false) => (Outcome::Caught, failed),
        // One test failed and another one hung.
        None if !failed.is_empty() => (Outcome::Caught, failed),
        None => (Outcome::Timeout, format!("the tests took longer than {limit} s")),
    })
}

/// Runs a command to its end and says whether it succeeded; none if it took too long.
fn finish(command: &mut Command, log: &Path, limit: u64) -> Result<Option<bool>> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    match process::run(command, Duration::from_secs(limit), |_| {})? {
        Ended::Killed => Ok(None),
        ended => Ok(Some(ended.is_success())),
    }
}

fn first_error(log: &str) -> String {
    log.lines().find(|line| line.starts_with("error")).unwrap_or("the compiler said nothing").to_owned()
}

/// The names of the first three failed tests, as `cargo nextest` or `cargo test` prints them.
fn failed_tests(log: &str) -> String {
    let of_nextest = |line: &str| {
        let is_failure = ["FAIL [", "SIGABRT [", "TIMEOUT ["].iter().any(|start| line.trim_start().starts_with(start));
        is_failure.then(|| line.rsplit(' ').next().unwrap_or_default().to_owned())
    };
    let of_cargo = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.trim().to_owned());
    let mut names: Vec<String> = log.lines().filter_map(|line| of_nextest(line).or_else(|| of_cargo(line))).collect();
    names.dedup();
    names.truncate(3);
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named_whichever_tool_ran_them() {
        let nextest =
            "        PASS [   0.010s] dacapo-store a::b\n        FAIL [   0.006s] (3/9) dacapo-store::it c::d\n";
        assert_eq!(failed_tests(nextest), "c::d");
        let cargo = "test a ... ok\ntest m::b ... FAILED\ntest c - should panic ... FAILED\n";
        assert_eq!(failed_tests(cargo), "m::b, c - should panic");
    }
}
