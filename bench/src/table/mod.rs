//! Lines of measurements as tables for people: Dacapo against its bars, and beside its rivals.

mod bars;
mod database;
mod rivals;

use std::path::PathBuf;

use anyhow::{Context, Result};
use dacapo_bench_meter::Line;

/// The tables of all lines of these files.
pub(crate) fn of_files(files: &[PathBuf]) -> Result<String> {
    let measured = read(files)?;
    Ok([bars::table(&measured), rivals::table(&measured, &rivals::COLUMNS)].join("\n"))
}

/// The tables of lines that were measured on a database.
pub(crate) fn of_files_on_a_database(files: &[PathBuf]) -> Result<String> {
    let measured = read(files)?;
    Ok([database::table(&measured), rivals::table(&measured, rivals::WITHOUT_FLUSHES)].join("\n"))
}

fn read(files: &[PathBuf]) -> Result<Measured> {
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for line in text.lines() {
            lines.push(serde_json::from_str(line).with_context(|| format!("{}: {line}", file.display()))?);
        }
    }
    Ok(Measured(lines))
}

/// All that was measured.
struct Measured(Vec<Line>);

impl Measured {
    /// What a system came to under a workload: where it was run several times, the one in the middle.
    fn get(&self, workload: &str, system: &str) -> Option<&Line> {
        let runs = self.runs(workload, system);
        middle(&runs).map(|run| runs[run])
    }

    /// What a limit came to in the run that speaks for Dacapo: only figures of one run can be compared.
    fn beside(&self, workload: &str, limit: &str) -> Option<&Line> {
        self.runs(workload, limit).get(middle(&self.runs(workload, "dacapo"))?).copied()
    }

    /// In the order in which they were run.
    fn runs(&self, workload: &str, system: &str) -> Vec<&Line> {
        self.0.iter().filter(|line| line.workload == workload && line.system == system).collect()
    }

    /// The workloads that begin with this, in order of their sizes.
    fn workloads(&self, prefix: &str) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|line| line.workload.as_str()).collect();
        names.retain(|name| name.starts_with(prefix));
        names.sort_by_key(|name| (name.len(), *name));
        names.dedup();
        names
    }

    /// The systems, in order of their names.
    fn systems(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|line| line.system.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Which of several runs is the one in the middle.
fn middle(runs: &[&Line]) -> Option<usize> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| runs[*a].throughput.total_cmp(&runs[*b].throughput));
    order.get(runs.len() / 2).copied()
}

/// A number for people: with commas where it is long, with digits where it is short.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => commas(&format!("{value:.0}")),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn commas(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_bench_meter::Latencies;

    fn line(workload: &str, system: &str, n: u64) -> Line {
        Line::new(workload, system, (n, "things"), 1.0, &Latencies::default())
    }

    #[test]
    fn measured_figure_is_the_median_of_its_runs() {
        let runs = [9, 1, 5].map(|n| line("w1", "dacapo", n));
        let measured = Measured(runs.into_iter().chain([line("w1", "other", 7)]).collect());
        assert_eq!(measured.get("w1", "dacapo").unwrap().n, 5);
        assert_eq!(measured.systems(), ["dacapo", "other"]);
    }

    #[test]
    fn figure_of_another_system_is_taken_from_the_same_run() {
        let runs = [(9, 90), (1, 10), (5, 50)];
        let lines = runs.iter().flat_map(|(own, limit)| [line("w1", "dacapo", *own), line("w1", "prototype", *limit)]);
        assert_eq!(Measured(lines.collect()).beside("w1", "prototype").unwrap().n, 50);
    }

    #[test]
    fn numbers_have_as_many_digits_as_people_read() {
        assert_eq!([0.2649, 12.34, 1_234_567.8, -4_321.0].map(number), ["0.26", "12.3", "1,234,568", "-4,321"]);
    }

    #[test]
    fn workload_meets_its_bar_by_its_figure_or_by_its_ratio_to_the_prototype() {
        let slow = Measured(vec![line("w1", "dacapo", 20_000), line("w1", "prototype", 90_000)]);
        assert!(bars::table(&slow).contains("| no |"), "{}", bars::table(&slow));
        let slow_machine = Measured(vec![line("w1", "dacapo", 20_000), line("w1", "prototype", 70_000)]);
        assert!(bars::table(&slow_machine).contains("| yes |"), "{}", bars::table(&slow_machine));
    }

    #[test]
    fn rivals_stand_beside_dacapo_with_their_distance() {
        let both = Measured(vec![line("w1", "dacapo", 50_000), line("w1", "slow", 500)]);
        let table = rivals::table(&both, &rivals::COLUMNS);
        assert!(table.contains("| slow | 500 (100 ×) |"), "{table}");
    }

    #[test]
    fn dacapo_on_a_database_meets_its_bar_beside_the_best_rival() {
        let met = |dacapo: u64, rival: u64| {
            let lines = vec![line("w1", "dacapo", dacapo), line("w1", "a", rival), line("w1", "b", 7)];
            database::table(&Measured(lines)).contains("| yes |")
        };
        assert!(met(12_000, 4_000));
        assert!(!met(12_000, 4_001), "less than three times the best");
        assert!(!met(9_999, 100), "less than 10,000 in a second");
        // A workload of one second takes a rival of fewer steps longer for each.
        let steps = |rival| vec![line("w3_1000", "dacapo", 1_000), line("w3_1000", "durare 0.5", rival)];
        assert!(database::table(&Measured(steps(999))).contains("| yes |"));
        assert!(database::table(&Measured(steps(1_001))).contains("| no |"));
    }
}
