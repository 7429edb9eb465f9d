//! The mutants that `cargo-mutants` makes: lists them, chooses from them, and has it try them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::copy::Copy;
use super::options::{Options, Source};
use super::results::{Outcome, Results, Trial, hash};
use super::{Tried, home, packages, tool, trial};
use crate::cargo;

/// A mutant as `cargo-mutants` lists it.
#[derive(Clone, Debug, Deserialize)]
struct Listed {
    /// `crates/store/src/apply.rs:36:17: replace && with || in apply`
    name: String,
    package: String,
    file: String,
}

/// A mutant, with a name that stays when lines above it change.
#[derive(Clone, Debug)]
struct Mutant {
    id: String,
    listed: Listed,
    /// A hash of its file.
    text: u64,
}

pub(super) fn run(root: &Path, options: &Options) -> Result<Tried> {
    let program = tool::installed(root)?;
    let chosen = choose(list(root, &program, &options.source)?, options);
    if options.only_list {
        chosen.iter().for_each(|mutant| println!("{}", mutant.listed.name));
        println!("mutants: {} chosen", chosen.len());
        return Ok(Tried::new());
    }
    let mut results = Results::load(&home(root))?;
    for job in 0..options.jobs.max(9) {
        absorb(&home(root).join(format!("out-{job}")), &mut results)?;
    }
    if options.retry_missed {
        results.forget_missed();
    }
    let copies = (0..options.jobs).map(|number| Copy::sync(root, number)).collect::<Result<Vec<_>>>()?;
    let stages = chosen.iter().map(|mutant| packages::stages(&mutant.listed.package).len()).max().unwrap_or(0);
    for stage in 0..stages {
        for (package, pending) in pending(&chosen, &results, stage) {
            println!(
                "mutants: {} of {package}, tests of {}",
                pending.len(),
                packages::stages(&package)[stage].join(", ")
            );
            try_all(root, &program, &copies, &Batch::new(&package, stage, pending), options.limit, &mut results)?;
        }
    }
    Ok(chosen.iter().map(|mutant| (mutant.listed.name.clone(), outcome(mutant, &results))).collect())
}

/// The mutants of the packages or of the lines that changed.
fn list(root: &Path, program: &Path, source: &Source) -> Result<Vec<Mutant>> {
    let mut command = tool::command(program, root);
    command.args(["--list", "--json", "--colors", "never"]);
    match source {
        Source::Changed(rev) => {
            let diff = Command::new("git").current_dir(root).args(["diff", rev, "--", "crates"]).output()?;
            ensure!(diff.status.success(), "git diff {rev}: {}", String::from_utf8_lossy(&diff.stderr).trim());
            let file = home(root).join("changed.diff");
            fs::create_dir_all(home(root))?;
            fs::write(&file, diff.stdout)?;
            command.arg("--in-diff").arg(file);
        }
        Source::Packages(packages) | Source::Sample { packages, .. } => {
            command.args(packages.iter().flat_map(|package| ["--package", package]));
        }
        Source::Breakages => {}
    }
    let output = command.output().context("cannot start cargo-mutants")?;
    ensure!(output.status.success(), "cargo mutants --list: {}", String::from_utf8_lossy(&output.stderr).trim());
    // There is no list at all where a diff touches no code.
    let text = String::from_utf8_lossy(&output.stdout);
    let listed: Vec<Listed> =
        if text.trim_start().starts_with('[') { serde_json::from_str(&text)? } else { Vec::new() };
    let mut texts: BTreeMap<String, u64> = BTreeMap::new();
    for mutant in &listed {
        if !texts.contains_key(&mutant.file) {
            let text = fs::read(root.join(&mutant.file)).with_context(|| format!("cannot read {}", mutant.file))?;
            texts.insert(mutant.file.clone(), hash(0, &text));
        }
    }
    Ok(named(listed, |file| texts[file]))
}

/// Gives each mutant its lasting name: its own without the line, and which of those it is that share it.
fn named(listed: Vec<Listed>, text: impl Fn(&str) -> u64) -> Vec<Mutant> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let named = listed.into_iter().map(|listed| {
        let what = listed.name.splitn(4, ':').nth(3).unwrap_or(&listed.name).trim();
        let place = format!("{}: {what}", listed.file);
        let count = seen.entry(place.clone()).or_default();
        *count += 1;
        Mutant { id: format!("{place} #{count}"), text: text(&listed.file), listed }
    });
    named.collect()
}

/// The mutants that were asked for: a sample is the same wherever it is taken, and shards share it out.
fn choose(mut mutants: Vec<Mutant>, options: &Options) -> Vec<Mutant> {
    if let Some(text) = &options.only {
        mutants.retain(|mutant| mutant.listed.name.contains(text));
    }
    if let Source::Sample { count, seed, .. } = &options.source {
        mutants.sort_by_key(|mutant| hash(*seed, mutant.id.as_bytes()));
        mutants.truncate(*count);
    }
    let (part, parts) = options.shard;
    mutants.into_iter().enumerate().filter(|(place, _)| place % parts == part - 1).map(|(_, mutant)| mutant).collect()
}

/// The result of a mutant over all its stages: a later stage is for what the earlier ones missed.
fn outcome(mutant: &Mutant, results: &Results) -> Option<Outcome> {
    let stages = packages::stages(&mutant.listed.package).len();
    let outcomes = (0..stages).map(|stage| results.get(&mutant.trial(stage)));
    let mut last = None;
    for outcome in outcomes {
        last = outcome;
        if outcome != Some(Outcome::Missed) {
            break;
        }
    }
    last
}

/// The mutants that a stage has to try, by package.
fn pending(chosen: &[Mutant], results: &Results, stage: usize) -> BTreeMap<String, Vec<Mutant>> {
    let mut pending: BTreeMap<String, Vec<Mutant>> = BTreeMap::new();
    for mutant in chosen {
        let was_missed = (0..stage).all(|earlier| results.get(&mutant.trial(earlier)) == Some(Outcome::Missed));
        let has_stage = stage < packages::stages(&mutant.listed.package).len();
        if was_missed && has_stage && results.get(&mutant.trial(stage)).is_none() {
            pending.entry(mutant.listed.package.clone()).or_default().push(mutant.clone());
        }
    }
    pending
}

impl Mutant {
    fn trial(&self, stage: usize) -> Trial {
        Trial { mutant: self.id.clone(), text: self.text, stage }
    }
}

/// Mutants of one package that are tried with the same tests. Kept beside their results, so that these can be read after an interruption.
#[derive(Serialize, Deserialize)]
struct Batch {
    package: String,
    stage: usize,
    /// By the name that `cargo-mutants` gives them.
    trials: BTreeMap<String, Trial>,
}

impl Batch {
    fn new(package: &str, stage: usize, mutants: Vec<Mutant>) -> Self {
        let trials = mutants.into_iter().map(|mutant| (mutant.listed.name.clone(), mutant.trial(stage))).collect();
        Self { package: package.to_owned(), stage, trials }
    }

    /// As many batches as there are copies.
    fn split(&self, parts: usize) -> Vec<Self> {
        let of = |part: usize| {
            let own = self.trials.iter().enumerate().filter(move |(place, _)| place % parts == part);
            let trials = own.map(|(_, (name, trial))| (name.clone(), trial.clone())).collect();
            Self { package: self.package.clone(), stage: self.stage, trials }
        };
        (0..parts).map(of).filter(|batch| !batch.trials.is_empty()).collect()
    }
}

fn try_all(
    root: &Path,
    program: &Path,
    copies: &[Copy],
    batch: &Batch,
    limit: u64,
    results: &mut Results,
) -> Result<()> {
    let parts = batch.split(copies.len());
    let ran: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(parts.iter().zip(copies))
            .map(|(job, (part, copy))| scope.spawn(move || try_batch(root, program, copy, job, part, limit)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread that runs cargo-mutants does not panic"))
            .collect()
    });
    for job in 0..parts.len() {
        absorb(&home(root).join(format!("out-{job}")), results)?;
    }
    ran.into_iter().collect()
}

fn try_batch(root: &Path, program: &Path, copy: &Copy, job: usize, batch: &Batch, limit: u64) -> Result<()> {
    let out = home(root).join(format!("out-{job}"));
    fs::create_dir_all(&out)?;
    fs::write(out.join("batch.json"), serde_json::to_string(batch)?)?;
    let names: Vec<String> = batch.trials.keys().map(|name| escaped(name)).collect();
    let mut command = tool::command(program, &copy.folder);
    cargo::forget_caller(&mut command);
    command.args(["--in-place", "--package", &batch.package, "--re", &format!("^({})$", names.join("|"))]);
    for package in &packages::stages(&batch.package)[batch.stage] {
        command.args(["--test-package", package]);
    }
    let limit = limit.to_string();
    command.args(["--timeout", &limit, "--build-timeout", "900", "--caught", "--unviable", "--colors", "never"]);
    command.args(["--test-tool", if tool::has_nextest(root) { "nextest" } else { "cargo" }, "--output"]).arg(&out);
    let status = command.envs(trial::ENVIRONMENT.iter().copied()).status().context("cannot start cargo-mutants")?;
    match status.code() {
        // All caught, some missed, some timed out.
        Some(0 | 2 | 3) => Ok(()),
        Some(4) => {
            bail!("the tests of the unbroken tree fail: see {}", out.join("mutants.out/log/baseline.log").display())
        }
        _ => bail!("cargo-mutants failed ({status})"),
    }
}

/// Keeps the results that `cargo-mutants` left in its folder, also those of a run that was interrupted.
fn absorb(out: &Path, results: &mut Results) -> Result<()> {
    let file = out.join("batch.json");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let batch: Batch = serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?;
    for outcome in [Outcome::Caught, Outcome::Missed, Outcome::Timeout, Outcome::Unviable] {
        let names = fs::read_to_string(out.join(format!("mutants.out/{outcome}.txt"))).unwrap_or_default();
        for trial in names.lines().filter_map(|name| batch.trials.get(name)) {
            results.keep(trial.clone(), outcome)?;
        }
    }
    fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    fs::remove_dir_all(out.join("mutants.out")).ok();
    Ok(())
}

/// A text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    let escape = |c: char| if "\\.+*?()|[]{}^$#&-~".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(names: &[&str]) -> Vec<Mutant> {
        let listed = names.iter().map(|name| Listed {
            name: (*name).to_owned(),
            package: "dacapo-core".to_owned(),
            file: name.split(':').next().unwrap().to_owned(),
        });
        named(listed.collect(), |_| 7)
    }

    fn options(words: &[&str]) -> Options {
        Options::parse(words).unwrap()
    }

    #[test]
    fn mutant_keeps_its_id_when_lines_above_it_change() {
        let ids = |names: &[&str]| mutants(names).into_iter().map(|mutant| mutant.id).collect::<Vec<_>>();
        let expected =
            ["a.rs: replace && with || in f #1", "a.rs: replace && with || in f #2", "b.rs: delete ! in g::h #1"];
        assert_eq!(
            ids(&[
                "a.rs:3:17: replace && with || in f",
                "a.rs:4:1: replace && with || in f",
                "b.rs:1:1: delete ! in g::h"
            ]),
            expected
        );
        assert_eq!(ids(&["a.rs:9:9: replace && with || in f"]), expected[..1]);
    }

    #[test]
    fn shards_share_out_a_sample_that_depends_on_the_seed_alone() {
        let names: Vec<String> = (0..50).map(|n| format!("a.rs:{n}:1: delete ! in f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let sample = |seed: &str, shard: &str| -> Vec<String> {
            let options = options(&["--sample", "10", "--seed", seed, "--shard", shard]);
            choose(mutants(&names), &options).into_iter().map(|mutant| mutant.listed.name).collect()
        };
        let whole = sample("1", "1/1");
        assert_eq!(whole.len(), 10);
        let mut parts = [sample("1", "1/2"), sample("1", "2/2")].concat();
        parts.sort();
        let mut sorted = whole.clone();
        sorted.sort();
        assert_eq!(parts, sorted);
        assert_ne!(whole, sample("2", "1/1"));
    }

    #[test]
    fn interrupted_batch_is_not_tried_again() {
        let home = std::env::temp_dir().join(format!("xtask-absorb-{}", std::process::id()));
        let out = home.join("out-0");
        fs::create_dir_all(out.join("mutants.out")).unwrap();
        let all = mutants(&["a.rs:1:1: delete ! in f", "a.rs:2:1: delete ! in g", "a.rs:3:1: delete ! in h"]);
        let batch = serde_json::to_string(&Batch::new("dacapo-core", 0, all.clone())).unwrap();
        fs::write(out.join("batch.json"), batch).unwrap();
        fs::write(out.join("mutants.out/caught.txt"), "a.rs:1:1: delete ! in f\n").unwrap();
        fs::write(out.join("mutants.out/missed.txt"), "a.rs:2:1: delete ! in g\n").unwrap();
        let mut results = Results::load(&home).unwrap();
        absorb(&out, &mut results).unwrap();
        absorb(&out, &mut results).unwrap();
        fs::remove_dir_all(&home).unwrap();
        let left =
            |stage| pending(&all, &results, stage).into_values().flatten().map(|m| m.listed.name).collect::<Vec<_>>();
        assert_eq!(left(0), ["a.rs:3:1: delete ! in h"]);
        assert_eq!(left(1), ["a.rs:2:1: delete ! in g"]);
        let outcomes: Vec<_> = all.iter().map(|mutant| outcome(mutant, &results)).collect();
        assert_eq!(outcomes, [Some(Outcome::Caught), None, None]);
    }

    #[test]
    fn names_are_escaped_for_the_filter() {
        assert_eq!(
            escaped("a.rs:1:2: replace <A>::f -> (u8) with ||"),
            "a\\.rs:1:2: replace <A>::f \\-> \\(u8\\) with \\|\\|"
        );
    }
}
