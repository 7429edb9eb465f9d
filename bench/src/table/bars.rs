//! Dacapo against its bars, each beside what the machine gave at best in the same run.

use dacapo_bench_meter::Line;

use super::{Measured, commas, number};

struct Row {
    what: String,
    figure: String,
    beside: String,
    bar: &'static str,
    met: bool,
}

pub(super) fn table(measured: &Measured) -> String {
    let mut text = String::from("| | Dacapo | beside it, in the same run | bar | met |\n|---|---|---|---|---|\n");
    for Row { what, figure, beside, bar, met } in rows(measured) {
        text += &format!("| {what} | {figure} | {beside} | {bar} | {} |\n", if met { "yes" } else { "no" });
    }
    text
}

fn rows(measured: &Measured) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(rate(measured, "w1", "W1: chains of activities", "activities/s", 30_000.0, 0.25, CHAINS));
    rows.extend(rate(measured, "w2", "W2: fans of activities", "activities/s", 30_000.0, 0.25, CHAINS));
    for workload in measured.workloads("w3_") {
        rows.extend(long(measured, workload));
    }
    rows.extend(latency(measured));
    rows.extend(measured.get("w5", "dacapo").map(replay));
    rows.extend(rate(measured, "w6", "W6: starts of sleepers", "starts/s", 20_000.0, 0.1, SLEEPERS));
    rows.extend(measured.get("w6", "dacapo").into_iter().flat_map(fresh));
    rows
}

const CHAINS: &str = "30,000/s, or a quarter of the prototype";
const SLEEPERS: &str = "20,000/s, or a tenth of the prototype";

/// A rate, beside that of the prototype.
fn rate(
    measured: &Measured,
    workload: &str,
    what: &str,
    unit: &str,
    least: f64,
    share: f64,
    bar: &'static str,
) -> Option<Row> {
    let dacapo = measured.get(workload, "dacapo")?;
    let prototype = measured.beside(workload, "prototype")?;
    let ratio = dacapo.throughput / prototype.throughput;
    Some(Row {
        what: what.to_owned(),
        figure: format!("{} {unit}", number(dacapo.throughput)),
        beside: format!(
            "prototype {}/s: {} of it; {} µs of processor time each",
            number(prototype.throughput),
            number(ratio),
            number(dacapo.cpu_seconds * 1e6 / dacapo.n as f64)
        ),
        bar,
        met: dacapo.throughput >= least || ratio >= share,
    })
}

/// W3: the average step, and whether it grows.
fn long(measured: &Measured, workload: &str) -> Vec<Row> {
    let (Some(dacapo), Some(bare)) = (measured.get(workload, "dacapo"), measured.beside(workload, "bare_commit"))
    else {
        return Vec::new();
    };
    let (step, first, last) =
        (figure(dacapo, "ms_per_step"), figure(dacapo, "first_tenth_ms"), figure(dacapo, "last_tenth_ms"));
    let commits = figure(dacapo, "bare_commits");
    let steps = commas(&(dacapo.n + 1).to_string());
    vec![
        Row {
            what: format!("W3: a step of {steps}"),
            figure: format!("{} ms", number(step)),
            beside: in_commits(bare.seconds * 1e3 / bare.n as f64, commits, dacapo),
            bar: "1.5 bare commits",
            met: commits <= 1.5,
        },
        Row {
            what: format!("W3: the last tenth of {steps}"),
            figure: format!("{} of the first", number(last / first)),
            beside: format!("{} ms then, {} ms now", number(first), number(last)),
            bar: "1.1",
            met: last / first <= 1.1,
        },
    ]
}

/// W4: from start to result.
fn latency(measured: &Measured) -> Option<Row> {
    let (dacapo, bare) = (measured.get("w4", "dacapo")?, measured.beside("w4", "bare_commit")?);
    let commits = figure(dacapo, "bare_commits");
    Some(Row {
        what: "W4: start, one activity, result".to_owned(),
        figure: format!("p50 {} ms, p99 {} ms", number(dacapo.p50_ms), number(dacapo.p99_ms)),
        beside: in_commits(bare.p50_ms, commits, dacapo),
        bar: "p50 of 3 bare commits",
        met: commits <= 3.0,
    })
}

/// W5: playing a run again.
fn replay(dacapo: &Line) -> Row {
    Row {
        what: format!("W5: replay of {} events", number(figure(dacapo, "history_events"))),
        figure: format!("{} events/s", number(dacapo.throughput)),
        beside: format!(
            "{} ms for the answer; {} µs of processor time per event",
            number(dacapo.p50_ms),
            number(dacapo.cpu_seconds * 1e6 / dacapo.n as f64)
        ),
        bar: "500,000/s",
        met: dacapo.throughput >= 500_000.0,
    }
}

/// W6: a process that has not seen the sleepers.
fn fresh(dacapo: &Line) -> [Row; 2] {
    let (bytes, cpu) = (figure(dacapo, "fresh_rss_bytes_per_run"), figure(dacapo, "fresh_idle_cpu_ms"));
    [
        Row {
            what: format!("W6: a fresh process over {} sleepers", number(dacapo.n as f64)),
            figure: format!("{} bytes per run", number(bytes)),
            beside: format!("opened in {} ms", number(figure(dacapo, "fresh_open_ms"))),
            bar: "1 KiB",
            met: bytes < 1024.0,
        },
        Row {
            what: "W6: the same, idle for 10 s".to_owned(),
            figure: format!("{} ms of processor time", number(cpu)),
            beside: String::new(),
            bar: "10 ms",
            met: cpu < 10.0,
        },
    ]
}

/// So many bare commits of so many milliseconds; and, where it is known, the same of what nothing disturbed.
fn in_commits(bare: f64, commits: f64, dacapo: &Line) -> String {
    let disturbed = format!("bare commit {} ms: {} of them", number(bare), number(commits));
    match (figure(dacapo, "quiet_ms"), figure(dacapo, "quiet_bare_commits")) {
        (quiet, commits) if quiet.is_finite() => {
            format!("{disturbed}; undisturbed {} ms: {} of them", number(quiet), number(commits))
        }
        _ => disturbed,
    }
}

/// A figure that is not there meets no bar.
fn figure(line: &Line, name: &str) -> f64 {
    line.figures.get(name).copied().unwrap_or(f64::NAN)
}
