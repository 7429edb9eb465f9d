//! Crash counts: the death of the process before this one is counted for the code that it ran, before anything else
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};

use dacapo_core::Timestamp;
use dacapo_store::{CrashCount, Doing, Refused, RunNo, RunRow, Shards, StoreError, StuckCause, Write};

use crate::report::stuck_reason::StuckReason;
use crate::run::deliver::poke;
use crate::run::new_run::start_no;
use crate::shared::Shared;
use crate::writes::submit;

/// The reason with which a quarantined run is stuck.
pub(crate) fn quarantine_reason(row: &RunRow) -> StuckReason {
    let or_else = if row.status.is_open() { "; or reset it, or terminate it" } else { "" };
    let text = format!(
        "the run of workflow {:?} is quarantined: the process died {} times while its code was played (a turn, an answer or \
         local work), so it is not played any more. See how the process died, correct the workflow, and release the run \
         (`Handle::release`){or_else}",
        row.workflow, row.crash_count
    );
    StuckReason::new(StuckCause::Quarantined, format!("workflow {}", row.workflow), text)
}

/// The reason with which a delayed run is stuck.
pub(crate) fn delayed_reason(row: &RunRow, until: Timestamp) -> StuckReason {
    let text = format!(
        "the run of workflow {:?} is delayed until {until}: the process died {} times while its code was played (a turn, an \
         answer or local work). It is played again by itself; see how the process died",
        row.workflow, row.crash_count
    );
    StuckReason::new(StuckCause::Delayed, format!("workflow {}", row.workflow), text)
}

/// Counts the death of the process before this one for all code that it was running. The counts are durable when this
/// returns, and no code has run yet. Only then are the notes forgotten, so that a process that dies meanwhile leaves
/// them to the next. False if the store does not answer any more.
pub(crate) fn count_crash(shared: &Arc<Shared>) -> Result<bool, StoreError> {
    let left: BTreeSet<Doing> = shared.store().left().into_iter().collect();
    loop {
        let counts = counts_of(shared, &left)?;
        if counts.is_empty() {
            break;
        }
        match write_now(shared, Write::CrashCounts(counts)) {
            Ok(true) => break,
            Ok(false) => return Ok(false),
            // Another node has counted its own death for one of the runs since they were read.
            Err(StoreError::Refused(Refused::MovedOn)) => {}
            Err(error) => return Err(error),
        }
    }
    shared.store().forget_left();
    expect_probation(shared, &left)?;
    Ok(true)
}

/// Returns the counts of all code that the process was running, each one higher than the store has it.
fn counts_of(shared: &Shared, left: &BTreeSet<Doing>) -> Result<Vec<CrashCount>, StoreError> {
    let mut counts = Vec::new();
    // For each run the turn with which it has gone on. None: whatever turns it has, the death is counted.
    let mut runs: BTreeMap<RunNo, Option<u64>> = BTreeMap::new();
    for code in left {
        match *code {
            Doing::Attempt(task) => {
                let row = shared.store().task(task)?;
                counts.extend(row.map(|row| CrashCount::Task { task, crash_count: row.crash_count + 1 }));
            }
            // Where one process serves the store, no other has played the run since.
            Doing::Turn { run, turn } if shared.nodes().is_some() => {
                let latest = runs.entry(run).or_insert(Some(turn));
                *latest = latest.map(|latest| latest.max(turn));
            }
            Doing::Turn { run, .. } | Doing::Run(run) | Doing::Answer(run) => _ = runs.insert(run, None),
            _ => {}
        }
    }
    for (run, turn) in runs {
        if let Some(row) = shared.store().run(run)? {
            counts.push(count_run(shared, &row, turn));
        }
    }
    Ok(counts)
}

fn count_run(shared: &Shared, row: &RunRow, turn: Option<u64>) -> CrashCount {
    let (now, seen) = (shared.now(), row.crash_count);
    let counted = RunRow { crash_count: seen + 1, ..row.clone() };
    let is_quarantined = shared.options.crash_limits.quarantines(counted.crash_count);
    let stuck = is_quarantined.then(|| quarantine_reason(&counted).into_stuck(now, 1, now));
    CrashCount::Died { run: row.no, seen, turn, stuck }
}

/// Puts the runs with a crash count on probation, so that they are played one at a time; some of them are delayed. Where several
/// nodes share the store, each does so with the runs of a shard when it gets the shard ([`wake_with_crash_count`]).
fn expect_probation(shared: &Shared, left: &BTreeSet<Doing>) -> Result<(), StoreError> {
    let mut starts: BTreeSet<u64> =
        left.iter().filter_map(|code| if let Doing::Start(start) = code { Some(*start) } else { None }).collect();
    let answering: BTreeSet<RunNo> =
        left.iter().filter_map(|code| if let Doing::Answer(run) = code { Some(*run) } else { None }).collect();
    let (now, limits) = (shared.now(), &shared.options.crash_limits);
    let mut with_crash_count: BTreeSet<_> = shared.store().runs_with_crash_count()?.into_iter().collect();
    for (_, run) in &with_crash_count {
        // A caller that starts the run again, with the same request, must not have its first turn played beside the
        // run.
        starts.extend(shared.store().run(*run)?.map(|row| start_no(&row.workflow_id)));
    }
    with_crash_count.retain(|(count, _)| shared.nodes().is_none() && !limits.quarantines(*count));
    let delayed: BTreeMap<_, _> = with_crash_count
        .iter()
        .filter_map(|(count, run)| Some((*run, (*count, limits.delayed_until(*count, now)?))))
        .collect();
    with_crash_count.retain(|(_, run)| !delayed.contains_key(run));
    shared.probation.expect(with_crash_count, delayed, starts, answering);
    Ok(())
}

/// Has the runs of these shards played that have a crash count: one after the other, as they come off probation.
pub(crate) fn wake_with_crash_count(shared: &Arc<Shared>, shards: &Shards) -> Result<(), StoreError> {
    let counted = shared.store().runs_with_crash_count()?;
    counted.into_iter().filter(|(_, run)| shards.has_run(*run)).for_each(|(_, run)| poke(shared, run));
    Ok(())
}

/// Submits a write, and waits for it. False if the store does not answer.
fn write_now(shared: &Arc<Shared>, write: Write) -> Result<bool, StoreError> {
    let (done, written) = mpsc::channel();
    submit(shared, write, move |_, result| drop(done.send(result)));
    written.recv().map_or(Ok(false), |answer| answer.map(|_| true))
}
