//! Dacapo on a database against its bars, which are figures of rivals on the same server.

use dacapo_bench_meter::Line;

use super::{Measured, number};

/// The rival whose times are the bar.
const DURARE: &str = "durare";
/// How many times the activities of the best rival Dacapo runs at least, and how many in a second.
const TIMES_THE_BEST: f64 = 3.0;
const LEAST: f64 = 10_000.0;

pub(super) fn table(measured: &Measured) -> String {
    let mut text = String::from("| | Dacapo | the rival, on the same server | bar | met |\n|---|---|---|---|---|\n");
    let rates = [("w1", "W1: activities/s"), ("w2", "W2: activities/s")];
    text.extend(rates.iter().filter_map(|(workload, what)| rate(measured, workload, what)));
    let step = |line: &Line| line.seconds * 1e3 / line.n as f64;
    text.extend(time(measured, "w3_1000", "W3: ms per step of 1,000", step));
    text.extend(time(measured, "w4", "W4: p50 in ms", |line| line.p50_ms));
    text
}

/// A row of activities in a second, beside the best rival.
fn rate(measured: &Measured, workload: &str, what: &str) -> Option<String> {
    let dacapo = measured.get(workload, "dacapo")?;
    let rivals = measured.systems().into_iter().filter(|system| *system != "dacapo");
    let rivals = rivals.filter_map(|system| measured.get(workload, system));
    let best = rivals.max_by(|a, b| a.throughput.total_cmp(&b.throughput))?;
    let ratio = dacapo.throughput / best.throughput;
    let met = ratio >= TIMES_THE_BEST && dacapo.throughput >= LEAST;
    let beside = format!("{} {}: {} times", best.system, number(best.throughput), number(ratio));
    Some(row(what, dacapo.throughput, &beside, "3 times the best and 10,000/s", met))
}

/// A row of times, beside durare.
fn time(measured: &Measured, workload: &str, what: &str, value: fn(&Line) -> f64) -> Option<String> {
    let dacapo = value(measured.get(workload, "dacapo")?);
    let system = measured.systems().into_iter().find(|system| system.starts_with(DURARE))?;
    let rival = value(measured.get(workload, system)?);
    let beside = format!("{system} {}: {} of it", number(rival), number(dacapo / rival));
    Some(row(what, dacapo, &beside, "not slower", dacapo <= rival))
}

fn row(what: &str, figure: f64, beside: &str, bar: &str, met: bool) -> String {
    format!("| {what} | {} | {beside} | {bar} | {} |\n", number(figure), if met { "yes" } else { "no" })
}
