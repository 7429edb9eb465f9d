//! Dacapo beside its rivals: each figure, and how many times better Dacapo's is.

use dacapo_bench_meter::Line;

use super::{Measured, number};

/// What Dacapo is measured against in the other table.
const LIMITS: [&str; 3] = ["prototype", "bare_commit", "bare_commit_same_thread"];

/// A column: its title, its workload, its figure, and whether more of it is better.
pub(super) type Column = (&'static str, &'static str, fn(&Line) -> f64, bool);

pub(super) const COLUMNS: [Column; 6] = [
    ("W1 activities/s", "w1", |line| line.throughput, true),
    ("W2 activities/s", "w2", |line| line.throughput, true),
    ("W3 ms per step of 1,000", "w3_1000", |line| line.seconds * 1e3 / line.n as f64, false),
    ("W4 p50 ms", "w4", |line| line.p50_ms, false),
    ("W6 starts/s", "w6", |line| line.throughput, true),
    ("flushes per step of W3", "w3_1000", |line| line.fsyncs as f64 / line.n as f64, false),
];

/// The columns without the last: a server flushes in another process.
pub(super) const WITHOUT_FLUSHES: &[Column] = COLUMNS.split_last().expect("there are columns").1;

pub(super) fn table(measured: &Measured, columns: &[Column]) -> String {
    let titles: String = columns.iter().map(|(title, ..)| format!(" {title} |")).collect();
    let mut text = format!("| |{titles}\n|---|{}\n", "---|".repeat(columns.len()));
    let mut systems: Vec<&str> = measured.systems().into_iter().filter(|system| !LIMITS.contains(system)).collect();
    systems.sort_by_key(|system| *system != "dacapo");
    for system in systems {
        let cells: String = columns.iter().map(|column| format!(" {} |", cell(measured, system, *column))).collect();
        text += &format!("| {system} |{cells}\n");
    }
    text
}

fn cell(measured: &Measured, system: &str, (title, workload, figure, more): Column) -> String {
    let Some(value) = measured.get(workload, system).map(figure) else { return String::new() };
    let dacapo = measured.get(workload, "dacapo").map(figure);
    match dacapo.filter(|_| system != "dacapo" && !title.starts_with("flushes")) {
        None => number(value),
        Some(dacapo) => {
            let better = if more { dacapo / value } else { value / dacapo };
            format!("{} ({} ×)", number(value), number(better))
        }
    }
}
