//! `mutants`: break the code on purpose and see whether a test notices.
//!
//! Most mutants are those that `cargo-mutants` makes by changing operators and return values; `xtask/breakages.toml` adds a few that mean
//! something: a fence removed, a flush left out. All of them are tried here, in copies of the tree under `target/mutants`, because
//! `cargo-mutants` itself can neither try a chosen list nor run the tests of dependants only for what a package's own tests miss. Results are
//! kept, so that an interrupted run continues where it stopped.

mod breakages;
mod copy;
mod generated;
mod options;
mod packages;
mod results;
mod tool;
mod trial;
mod tries;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::options::{Options, Source};
use self::results::Outcome;
use self::tries::Mutant;

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    let began = Instant::now();
    let mutants = match &options.source {
        Source::Breakages => breakages::load(root)?,
        Source::Changed(_) | Source::Packages(_) | Source::Sample { .. } => generated::load(root, &options)?,
    };
    let mutants = chosen(mutants, &options);
    if options.only_list {
        mutants.iter().for_each(|mutant| println!("{}", mutant.name));
        println!("mutants: {} chosen", mutants.len());
        return Ok(());
    }
    let _lock = lock(root)?;
    let tried = tries::run(root, &mutants, &options)?;
    println!("\nmutants: summary after {:.0?}", began.elapsed());
    summarise(&tried)?;
    if options.source == Source::Breakages && tried.values().any(|outcome| *outcome == Some(Outcome::Unviable)) {
        bail!("mutants: the body of a breakage does not compile: correct the entry in xtask/breakages.toml");
    }
    Ok(())
}

/// The part of the mutants that the options ask for.
fn chosen(mutants: Vec<Mutant>, options: &Options) -> Vec<Mutant> {
    let (part, parts) = options.shard;
    let named =
        mutants.into_iter().filter(|mutant| options.only.as_ref().is_none_or(|text| mutant.name.contains(text)));
    named.enumerate().filter(|(place, _)| place % parts == part - 1).map(|(_, mutant)| mutant).collect()
}

/// Everything that was asked for, by name, with its result. What has none was not tried.
type Tried = BTreeMap<String, Option<Outcome>>;

fn summarise(tried: &Tried) -> Result<()> {
    let count = |wanted: Outcome| tried.values().filter(|outcome| **outcome == Some(wanted)).count();
    let (caught, missed, timeout) = (count(Outcome::Caught), count(Outcome::Missed), count(Outcome::Timeout));
    let (unviable, untried) = (count(Outcome::Unviable), tried.values().filter(|outcome| outcome.is_none()).count());
    for wanted in [Outcome::Missed, Outcome::Timeout] {
        for (name, _) in tried.iter().filter(|(_, outcome)| **outcome == Some(wanted)) {
            println!("  {wanted:<8}  {name}");
        }
    }
    println!("  caught {caught}, missed {missed}, timeout {timeout}, unviable {unviable}, not tried {untried}");
    let viable = caught + missed + timeout;
    if viable > 0 {
        // Tests that hang are noticed like tests that fail.
        let noticed = caught + timeout;
        let share = 100.0 * noticed as f64 / viable as f64;
        println!("  tests noticed {noticed} of {viable} viable mutants: {share:.1} %");
    }
    match (missed, untried) {
        (0, 0) => Ok(()),
        (0, _) => bail!("mutants: {untried} of {} were not tried", tried.len()),
        _ => bail!("mutants: {missed} of {viable} viable mutants were missed: write the tests that notice them"),
    }
}

/// Held for as long as this process uses the copies of the tree.
fn lock(root: &Path) -> Result<File> {
    let path = home(root).join("lock");
    std::fs::create_dir_all(home(root)).with_context(|| format!("cannot create {}", home(root).display()))?;
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another `cargo xtask mutants` uses {}: wait for its end", home(root).display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// The folder of everything that `mutants` keeps.
fn home(root: &Path) -> std::path::PathBuf {
    root.join("target/mutants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_fails_when_a_mutant_is_missed_or_was_not_tried() {
        let tried = |outcomes: &[Option<Outcome>]| {
            let named = (0..).map(|number: usize| number.to_string()).zip(outcomes.iter().copied());
            summarise(&named.collect()).map_err(|error| error.to_string())
        };
        let (caught, unviable) = (Some(Outcome::Caught), Some(Outcome::Unviable));
        assert_eq!(tried(&[caught, Some(Outcome::Timeout), unviable]), Ok(()));
        let missed = tried(&[caught, Some(Outcome::Missed), unviable]).unwrap_err();
        assert_eq!(missed, "mutants: 1 of 2 viable mutants were missed: write the tests that notice them");
        assert_eq!(tried(&[caught, None]).unwrap_err(), "mutants: 1 of 2 were not tried");
    }
}
