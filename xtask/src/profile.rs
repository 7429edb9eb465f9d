//! `profile`: where the processor time of each workload goes, by areas of code, as `perf` samples it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::bench;

/// W4 is over in a moment: what it would show is how it is warmed up.
const WORKLOADS: [&str; 5] = ["w1", "w2", "w3", "w5", "w6"];

/// An area of code, and how its symbols begin or what they contain. The first that fits counts.
const AREAS: [(&str, &[&str]); 7] = [
    ("allocator", &["malloc", "_int_", "cfree", "realloc", "calloc", "unlink_chunk", "__rdl", "__rust_", "free_"]),
    ("copies", &["__memmove", "__memcpy", "__memset", "__memcmp"]),
    ("codecs", &["minicbor", "serde_json", "crc32fast", "dacapo::json", "core::str", "from_bytes"]),
    ("turns (core)", &["dacapo_core"]),
    ("engine and store", &["dacapo", "rusqlite", "hashbrown", "alloc::", "core::", "std::"]),
    ("runtime", &["tokio", "futures", "parking_lot", "pthread", "lll_lock", "syscall"]),
    (
        "SQLite",
        &["sqlite3", "wal", "pager", "pcache", "vdbe", "balance", "btree", "cell", "page", "move", "insert", "unix"],
    ),
];
const WAITING: [&str; 8] = ["futex", "sched", "switch", "wake", "spin", "enqueue", "dequeue", "idle"];

pub(crate) fn run(root: &Path) -> Result<()> {
    bench::build(root)?;
    let mut columns = Vec::new();
    for workload in WORKLOADS {
        println!("{workload}");
        columns.push(shares(root, workload)?);
    }
    let mut areas: Vec<&String> = columns.iter().flat_map(BTreeMap::keys).collect();
    areas.sort();
    areas.dedup();
    println!("\n| | {} |\n|---|{}", WORKLOADS.join(" | ").to_uppercase(), "---|".repeat(WORKLOADS.len()));
    for area in areas {
        let shares: Vec<String> =
            columns.iter().map(|column| format!("{:.0} %", column.get(area).copied().unwrap_or_default())).collect();
        println!("| {area} | {} |", shares.join(" | "));
    }
    Ok(())
}

/// The share of each area in a workload, in per cent.
fn shares(root: &Path, workload: &str) -> Result<BTreeMap<String, f64>> {
    let samples = root.join("target/bench").join(format!("{workload}.perf"));
    std::fs::create_dir_all(root.join("target/bench"))?;
    let begun = Instant::now();
    let mut record = Command::new("perf");
    record.args(["record", "--quiet", "-F", "2000", "-o"]).arg(&samples).arg(bench::executable(root));
    let recorded = record.current_dir(root).args(["--only", workload]).output();
    let recorded = recorded.context("cannot start `perf`: install the package linux-perf")?;
    ensure!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let mut report = Command::new("perf");
    report.args(["report", "--stdio", "--sort", "dso,symbol", "-F", "overhead,dso,symbol", "-i"]).arg(&samples);
    if workload == "w5" {
        // Before it can be played again, a history has to be made.
        let replays = seconds(&String::from_utf8_lossy(&recorded.stdout)).context("W5 printed no time")?;
        let from = 100.0 * (1.0 - replays / begun.elapsed().as_secs_f64());
        report.args(["--time", &format!("{from:.0}%-100%")]);
    }
    let reported = report.output().context("cannot start `perf`")?;
    if !reported.status.success() {
        bail!("{}", String::from_utf8_lossy(&reported.stderr));
    }
    let mut shares = BTreeMap::new();
    for (share, area) in String::from_utf8_lossy(&reported.stdout).lines().filter_map(read) {
        *shares.entry(area.to_owned()).or_default() += share;
    }
    let all: f64 = shares.values().sum();
    shares.values_mut().for_each(|share| *share *= 100.0 / all);
    Ok(shares)
}

/// How long the first line of measurements says that it took.
fn seconds(lines: &str) -> Option<f64> {
    let (_, rest) = lines.split_once("\"seconds\":")?;
    rest.split(',').next()?.parse().ok()
}

/// A line of a report: the share of a symbol, and the area it belongs to.
fn read(line: &str) -> Option<(f64, &'static str)> {
    let mut words = line.split_whitespace();
    let share = words.next()?.strip_suffix('%')?.parse().ok()?;
    let (_, kind, symbol) = (words.next()?, words.next()?, words.collect::<Vec<_>>().join(" "));
    Some((share, area(kind == "[k]", &symbol)))
}

fn area(is_kernel: bool, symbol: &str) -> &'static str {
    if is_kernel {
        return match WAITING.iter().any(|part| symbol.contains(part)) {
            true => "system: threads",
            false => "system: files and disk",
        };
    }
    let symbol = symbol.trim_start_matches('<');
    let fits = |part: &&str| symbol.starts_with(*part) || (part.len() > 5 && symbol.contains(*part));
    AREAS.iter().find(|(_, parts)| parts.iter().any(fits)).map_or("else", |(area, _)| *area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_report_is_a_share_of_an_area() {
        let read = |line| read(line).unwrap();
        assert_eq!(read("     5.74%  libc.so.6     [.] __memmove_avx512_unaligned_erms"), (5.74, "copies"));
        assert_eq!(
            read(
                "     1.73%  dacapo-bench  [.] <dacapo_core::command::ScheduleActivity as minicbor::decode::Decode<Ctx>>::decode"
            ),
            (1.73, "codecs")
        );
        assert_eq!(read("     3.01%  dacapo-bench  [.] dacapo_core::run::Run::play_turn"), (3.01, "turns (core)"));
        assert_eq!(read("     2.27%  dacapo-bench  [.] sqlite3VdbeExec"), (2.27, "SQLite"));
        assert_eq!(read("     2.10%  libc.so.6     [.] malloc"), (2.1, "allocator"));
        assert_eq!(read("     0.90%  dacapo-bench  [.] tokio::runtime::task::raw::poll"), (0.9, "runtime"));
        assert_eq!(read("     3.20%  [kernel]      [k] finish_task_switch.isra.0"), (3.2, "system: threads"));
        assert_eq!(read("     2.75%  [kernel]      [k] _copy_to_iter"), (2.75, "system: files and disk"));
        assert!(super::read("# Samples: 28K of event").is_none() && super::read("").is_none());
    }

    #[test]
    fn the_time_of_a_workload_is_read_from_its_line() {
        assert_eq!(seconds("{\"workload\":\"w5\",\"seconds\":1.5,\"throughput\":3}"), Some(1.5));
        assert_eq!(seconds("nothing"), None);
    }
}
