//! `check` and `test`: the gates as lists of steps. Every step runs, so that one look shows all that is wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{api, cargo, package, postgres, requirements, temporal, tidy};

struct Step {
    name: &'static str,
    work: Work,
    /// What to do when it fails.
    advice: &'static str,
}

enum Work {
    Cargo { args: &'static [&'static str], env: &'static [(&'static str, &'static str)] },
    Own(fn(&Path) -> Result<()>),
}

/// The features of what is not part of the default build: the Temporal backend, the store in PostgreSQL and its tests.
const FEATURES: &str = "dacapo/temporal,dacapo-examples/temporal,dacapo/postgres,dacapo-examples/postgres,dacapo-postgres/conformance,\
     dacapo-bench/postgres,dacapo-test-postgres/server";

const STILL: &[Step] = &[
    Step { name: "rustfmt", work: plain(&["fmt", "--all", "--check"]), advice: "run `cargo fmt --all`" },
    Step {
        name: "clippy",
        work: plain(&["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "--deny", "warnings"]),
        advice: "heed the lint, or allow it where it stands with a reason",
    },
    Step {
        name: "lock files",
        work: Work::Own(cargo::locks_are_current),
        advice: "the workspaces outside of ours, such as those of the bench's rivals, depend on our crates",
    },
    Step { name: "tidy", work: Work::Own(tidy::run), advice: "each finding says what to do" },
    Step {
        name: "requirements",
        work: Work::Own(requirements::check),
        advice: "name the id in the doc comment of a test that shows it, then `cargo xtask requirements --fill`",
    },
    Step {
        name: "docs",
        work: Work::Cargo {
            args: &["doc", "--workspace", "--no-deps", "--features", FEATURES],
            env: &[("RUSTDOCFLAGS", "-D warnings")],
        },
        advice: "repair the doc comment",
    },
    Step {
        name: "public api",
        work: Work::Own(api::check),
        advice: "if the change is meant, `cargo xtask api --fill`; a type of another crate needs a reason",
    },
];

/// Property tests that take their number of cases from the environment run fewer of them here.
const FAST: &[Step] = &[Step {
    name: "fast tests",
    work: Work::Cargo { args: &["test", "--workspace", "--lib", "--tests"], env: &[("PROPTEST_CASES", "64")] },
    advice: "read the first failure above",
}];

const WHOLE: &[Step] = &[
    Step {
        name: "all tests",
        work: plain(&["test", "--workspace", "--all-targets"]),
        advice: "read the first failure above",
    },
    Step {
        name: "temporal",
        work: Work::Own(temporal::all),
        advice: "read the first failure above; `cargo xtask temporal` runs this step alone",
    },
    Step {
        name: "postgres",
        work: Work::Own(postgres::all),
        advice: "read the first failure above; `cargo xtask postgres` runs this step alone",
    },
    Step { name: "doctests", work: plain(&["test", "--workspace", "--doc"]), advice: "repair the example" },
    Step {
        name: "package",
        work: Work::Own(package::quick),
        advice: "a published crate depends by path and version on published crates only",
    },
];

const fn plain(args: &'static [&'static str]) -> Work {
    Work::Cargo { args, env: &[] }
}

pub(crate) fn check(root: &Path) -> Result<()> {
    pass(root, "check", STILL.iter().chain(FAST))
}

pub(crate) fn test(root: &Path) -> Result<()> {
    pass(root, "test", STILL.iter().chain(WHOLE))
}

fn pass<'a>(root: &Path, gate: &str, steps: impl Iterator<Item = &'a Step>) -> Result<()> {
    let mut taken: Vec<(&Step, Result<()>, Duration)> = Vec::new();
    for step in steps {
        println!("\n==== {}", step.name);
        let begun = Instant::now();
        let outcome = step.run(root);
        if let Err(error) = &outcome {
            println!("{error:#}");
        }
        taken.push((step, outcome, begun.elapsed()));
    }
    println!("\n==== {gate}: summary");
    for (step, outcome, time) in &taken {
        match outcome {
            Ok(()) => println!("  ok      {:<14} {:>6.1} s", step.name, time.as_secs_f32()),
            Err(_) => println!("  FAILED  {:<14} {:>6.1} s   {}", step.name, time.as_secs_f32(), step.advice),
        }
    }
    let failed: Vec<&str> =
        taken.iter().filter(|(_, outcome, _)| outcome.is_err()).map(|(step, ..)| step.name).collect();
    if !failed.is_empty() {
        bail!("{gate}: {} of {} steps failed: {}", failed.len(), taken.len(), failed.join(", "));
    }
    println!("{gate}: all {} steps passed", taken.len());
    Ok(())
}

impl Step {
    fn run(&self, root: &Path) -> Result<()> {
        match &self.work {
            Work::Own(work) => work(root),
            Work::Cargo { args, env } => {
                let shown = format!("cargo {}", args.join(" "));
                println!("{}{shown}", env.iter().map(|(name, value)| format!("{name}='{value}' ")).collect::<String>());
                let status = cargo::command(root).args(*args).envs(env.iter().copied()).status();
                if !status.with_context(|| format!("cannot start `{shown}`"))?.success() {
                    bail!("`{shown}` failed");
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_fails_the_gate_and_the_later_steps_still_run() {
        let root = std::env::temp_dir().join(format!("xtask-gate-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let steps = [
            Step { name: "one", work: Work::Own(|_| bail!("no")), advice: "" },
            Step { name: "two", work: Work::Own(|root| Ok(std::fs::write(root.join("ran"), "")?)), advice: "" },
        ];
        let error = pass(&root, "check", steps.iter()).unwrap_err().to_string();
        let ran = root.join("ran").exists();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(error, "check: 1 of 2 steps failed: one");
        assert!(ran);
    }
}
