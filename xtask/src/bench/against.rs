//! `bench --against REV`: this tree beside an earlier one, in turns, and whether it costs more.
//!
//! Both builds run each workload in every round, in the order A B, B A, A B …, so that what the machine does meanwhile happens to both. The
//! bench program prints the processor time of what it measures (`getrusage`), without the baselines that it runs beside it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::ratio::Ratio;
use super::{OWN, Options, WORKLOADS};

/// How much more processor time an item may take.
const CPU: f64 = 1.03;

/// One of the two builds.
struct Build {
    name: &'static str,
    executable: PathBuf,
}

/// The line of a measurement, as far as it is compared.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    workload: String,
    system: String,
    n: u64,
    unit: String,
    seconds: f64,
    cpu_seconds: f64,
}

/// What both builds measured in one round.
#[derive(Clone, Debug)]
struct Pair {
    old: Line,
    new: Line,
}

pub(super) fn run(root: &Path, rev: &str, options: &Options) -> Result<()> {
    let commit = git(root, &["rev-parse", "--verify", &format!("{rev}^{{commit}}")])?;
    let old_root = checked_out(root, &commit)?;
    println!("bench: building {rev} ({})", &commit[..12]);
    OWN.build(&old_root)?;
    println!("bench: building this tree");
    OWN.build(root)?;
    let old = Build { name: "old", executable: OWN.executable(&old_root) };
    let new = Build { name: "new", executable: OWN.executable(root) };
    let log = root.join("target/bench").join(format!("against-{}.jsonl", &commit[..12]));
    let mut pairs: BTreeMap<String, Vec<Pair>> = BTreeMap::new();
    for round in 1..=options.runs {
        for workload in WORKLOADS.iter().filter(|workload| options.includes(workload)) {
            println!("round {round} of {}: {workload}", options.runs);
            let measure = |build: &Build| build.measure(root, workload, options.quick, &log);
            let (old, new) = match round % 2 == 1 {
                true => {
                    let old = measure(&old)?;
                    (old, measure(&new)?)
                }
                false => {
                    let new = measure(&new)?;
                    (measure(&old)?, new)
                }
            };
            for pair in paired(old, new)? {
                pairs.entry(pair.new.workload.clone()).or_default().push(pair);
            }
        }
    }
    let (table, missed) = table(&pairs);
    println!("\nbench: this tree against {rev}, {} rounds\n\n{table}", options.runs);
    println!(
        "The bar: processor time per item at most {:.0} % higher, and a 95 % interval of the wall-clock ratio that includes 1 or is below it.",
        (CPU - 1.0) * 100.0
    );
    if !missed.is_empty() {
        bail!("bench: the bar is not met by {}", missed.join(", "));
    }
    Ok(())
}

/// The files of a commit, in a folder under `target`. Nothing is registered with git, so the folder may be deleted at any time.
fn checked_out(root: &Path, commit: &str) -> Result<PathBuf> {
    let folder = root.join("target/bench").join(&commit[..12]);
    if !folder.join("Cargo.toml").exists() {
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let index = root.join("target/bench").join(format!("{}.index", &commit[..12]));
        let prefix = format!("--prefix={}/", folder.display());
        for words in [&["read-tree", commit][..], &["checkout-index", "--all", "--force", &prefix]] {
            let status = Command::new("git").current_dir(root).env("GIT_INDEX_FILE", &index).args(words).status();
            let status = status.context("cannot start git")?;
            ensure!(status.success(), "git {} failed ({status})", words[0]);
        }
        fs::remove_file(&index).ok();
    }
    Ok(folder)
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(root).args(words).output().context("cannot start git")?;
    ensure!(output.status.success(), "git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

impl Build {
    /// Runs one workload and gives the lines of Dacapo itself. All lines are kept in a file.
    fn measure(&self, root: &Path, workload: &str, quick: bool, log: &Path) -> Result<Vec<Line>> {
        let mut command = Command::new(&self.executable);
        command.current_dir(root).args(["--only", workload]).args(quick.then_some("--quick"));
        let output = command.output().with_context(|| format!("cannot start {}", self.executable.display()))?;
        ensure!(
            output.status.success(),
            "{workload} on the {} build: {}",
            self.name,
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout)?;
        let mut file = OpenOptions::new().create(true).append(true).open(log)?;
        for line in text.lines() {
            writeln!(file, "{{\"build\":\"{}\",\"line\":{line}}}", self.name)?;
        }
        let lines = text.lines().map(|line| {
            serde_json::from_str::<Line>(line)
                .with_context(|| format!("cannot read a line of the {} build: {line}", self.name))
        });
        Ok(lines.collect::<Result<Vec<_>>>()?.into_iter().filter(|line| line.system == "dacapo").collect())
    }
}

/// The lines of the two builds, each beside its twin.
fn paired(old: Vec<Line>, new: Vec<Line>) -> Result<Vec<Pair>> {
    ensure!(old.len() == new.len(), "the builds print {} and {} lines", old.len(), new.len());
    let pair = |(old, new): (Line, Line)| {
        let is_same = old.workload == new.workload && old.unit == new.unit;
        ensure!(is_same, "the builds measure {} in {} and {} in {}", old.workload, old.unit, new.workload, new.unit);
        // W1 and W2 are repeated for some seconds; all others do the same work.
        let is_timed = matches!(old.workload.as_str(), "w1" | "w2");
        ensure!(is_timed || old.n == new.n, "the builds do {} and {} items of {}", old.n, new.n, old.workload);
        Ok(Pair { old, new })
    };
    old.into_iter().zip(new).map(pair).collect()
}

/// Whether a workload meets the bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bar {
    Met,
    Missed,
    /// Its processor time is above the bar, but the interval includes it.
    Unclear,
}

impl Bar {
    fn of(cpu: Ratio, wall: Ratio) -> Self {
        match (cpu.mean <= CPU, cpu.low <= CPU, wall.low <= 1.0) {
            (true, _, true) => Self::Met,
            (false, true, true) => Self::Unclear,
            (_, _, false) | (false, false, true) => Self::Missed,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unclear => "UNCLEAR: more rounds",
        }
    }
}

/// The table, and the workloads that do not meet the bar.
fn table(pairs: &BTreeMap<String, Vec<Pair>>) -> (String, Vec<String>) {
    let mut text = "| workload | CPU per item, old → new | CPU ratio (95 %) | wall-clock ratio (95 %) | bar |\n|---|---|---|---|---|\n".to_owned();
    let mut missed = Vec::new();
    for (workload, pairs) in pairs {
        let cpu = |line: &Line| line.cpu_seconds / line.n as f64;
        let wall = |line: &Line| line.seconds / line.n as f64;
        let mean =
            |of: fn(&Pair) -> &Line| 1e6 * pairs.iter().map(|pair| cpu(of(pair))).sum::<f64>() / pairs.len() as f64;
        let (old, new) = (mean(|pair| &pair.old), mean(|pair| &pair.new));
        let ratio =
            |value: &dyn Fn(&Line) -> f64| Ratio::of(pairs.iter().map(|pair| (value(&pair.old), value(&pair.new))));
        let (cpu, wall) = (ratio(&cpu), ratio(&wall));
        let bar = Bar::of(cpu, wall);
        text +=
            &format!("| {} | {old:.2} → {new:.2} µs | {cpu} | {wall} | {} |\n", workload.to_uppercase(), bar.text());
        if bar != Bar::Met {
            missed.push(workload.clone());
        }
    }
    (text, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(workload: &str, n: u64, seconds: f64, cpu_seconds: f64) -> Line {
        Line { workload: workload.into(), system: "dacapo".into(), n, unit: "steps".into(), seconds, cpu_seconds }
    }

    #[test]
    fn workload_misses_the_bar_by_processor_time_or_by_wall_clock() {
        let pairs = |cpu: f64, wall: f64| {
            let pair = |old: f64| Pair { old: line("w3", 100, old, old), new: line("w3", 100, old * wall, old * cpu) };
            table(&BTreeMap::from([("w3".to_owned(), vec![pair(1.0), pair(1.1), pair(0.9)])]))
        };
        assert_eq!(pairs(1.02, 0.9).1, [""; 0]);
        assert_eq!(pairs(1.04, 0.9).1, ["w3"]);
        assert_eq!(pairs(1.0, 1.2).1, ["w3"]);
        let noisy = Ratio::of([(1.0, 1.0), (1.0, 1.3)].into_iter());
        let same = Ratio::of([(1.0, 1.0), (1.0, 1.0)].into_iter());
        assert_eq!((Bar::of(noisy, same), Bar::of(same, noisy)), (Bar::Unclear, Bar::Met));
        let (text, _) = pairs(1.02, 0.9);
        assert!(
            text.contains("| W3 | 10000.00 → 10200.00 µs | 1.020 (1.020 to 1.020) | 0.900 (0.900 to 0.900) | met |"),
            "{text}"
        );
    }

    #[test]
    fn builds_that_do_different_work_are_not_compared() {
        let old = vec![line("w3", 100, 1.0, 1.0)];
        let error = |new: Line| paired(old.clone(), vec![new]).unwrap_err().to_string();
        assert_eq!(error(line("w3", 90, 1.0, 1.0)), "the builds do 100 and 90 items of w3");
        assert_eq!(error(line("w4", 100, 1.0, 1.0)), "the builds measure w3 in steps and w4 in steps");
        assert!(paired(vec![line("w1", 100, 1.0, 1.0)], vec![line("w1", 90, 1.0, 1.0)]).is_ok());
    }
}
