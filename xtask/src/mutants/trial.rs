//! One trial: build the tests, run them one binary after the other, stop at the first that fails.
//!
//! The binaries are started directly and not through `cargo test`, so that one that hangs can be ended by its own id.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cargo;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Every test passed: nobody noticed.
    Passed,
    /// The tests that failed.
    Failed(String),
    OutOfTime,
    /// Its first error. This is a fault of the list, not a catch.
    DoesNotCompile(String),
}

/// Few cases, always the same ones, without shrinking or notes for later: the question is only whether a test fails.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PROPTEST_CASES", "32"),
    ("PROPTEST_RNG_SEED", "1"),
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
    ("RUST_BACKTRACE", "0"),
];

pub(super) fn run(bench: &Path, target: &Path, build: &str, filter: &str, limit: u64) -> Result<Outcome> {
    let binaries = match build_tests(bench, target, build)? {
        Ok(binaries) => binaries,
        Err(error) => return Ok(Outcome::DoesNotCompile(error)),
    };
    let end = Instant::now() + Duration::from_secs(limit);
    for binary in &binaries {
        let outcome = run_binary(binary, filter, &target.join("output.txt"), end)?;
        if outcome != Outcome::Passed {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Passed)
}

struct Binary {
    path: PathBuf,
    /// Tests start in their crate's folder, as under cargo.
    folder: PathBuf,
}

/// One line of cargo's messages, as far as we read it.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
}

/// The built binaries, or the compiler's first error.
fn build_tests(bench: &Path, target: &Path, args: &str) -> Result<Result<Vec<Binary>, String>> {
    for _ in 0..2 {
        let output = cargo::command(bench)
            .args(["test", "--no-run", "--quiet", "--message-format=json"])
            .args(args.split_whitespace())
            .env("CARGO_TARGET_DIR", target)
            .output()
            .context("cannot start cargo test")?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let messages: Vec<Message> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if output.status.success() {
            return Ok(Ok(messages.into_iter().filter_map(binary).collect()));
        }
        let mut diagnostics = messages.into_iter().filter_map(|message| message.message);
        if let Some(error) = diagnostics.find(|diagnostic| diagnostic.level == "error") {
            return Ok(Err(error.message));
        }
        // A compiler that failed without a word was ended by somebody, and gets a second go.
        eprintln!("mutants: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    bail!("`cargo test --no-run {args}` failed twice without an error of the compiler")
}

fn binary(message: Message) -> Option<Binary> {
    let folder = message.manifest_path?.parent()?.to_path_buf();
    Some(Binary { path: message.executable?, folder })
}

fn run_binary(binary: &Binary, filter: &str, output: &Path, end: Instant) -> Result<Outcome> {
    let mut child = Command::new(&binary.path)
        .args(filter.split_whitespace())
        .current_dir(&binary.folder)
        .env("CARGO_MANIFEST_DIR", &binary.folder)
        .env_remove("UPDATE_EXPECT")
        .envs(ENVIRONMENT.iter().copied())
        .stdin(Stdio::null())
        .stdout(File::create(output)?)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", binary.path.display()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::OutOfTime);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if status.success() {
        return Ok(Outcome::Passed);
    }
    let names = failed_tests(&fs::read_to_string(output)?);
    let name = if names.is_empty() { format!("the end of {} ({status})", binary.path.display()) } else { names };
    Ok(Outcome::Failed(name))
}

/// The names of the failed tests, the first three of them.
fn failed_tests(output: &str) -> String {
    let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.trim().to_owned());
    let mut names: Vec<String> = output.lines().filter_map(failed).collect();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    names.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_tests_are_named() {
        let output = "running 6 tests\ntest a ... ok\ntest m::b ... FAILED\ntest c - should panic ... FAILED\n
test d ... FAILED\ntest e ... FAILED\n\nfailures:\n";
        assert_eq!(failed_tests(output), "m::b, c - should panic, d and 1 more");
        assert_eq!(failed_tests("running 1 test\n"), "");
    }

    #[test]
    fn a_message_is_a_binary_only_if_it_can_be_started() {
        let parse = |text: &str| binary(serde_json::from_str(text).unwrap());
        let built = r#"{"reason":"compiler-artifact","executable":"/t/a","manifest_path":"/a/Cargo.toml"}"#;
        assert_eq!(parse(built).unwrap().folder, Path::new("/a"));
        let library = r#"{"reason":"compiler-artifact","executable":null,"manifest_path":"/a/Cargo.toml"}"#;
        assert!(parse(library).is_none());
    }
}
