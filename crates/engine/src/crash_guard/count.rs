//! Crash counts: the death of the process before this one is counted for the code that it ran, before anything else
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};

use dacapo_core::Timestamp;
use dacapo_store::{CrashCount, Doing, RunRow, StoreError, StuckCause, Write};

use crate::report::stuck_reason::StuckReason;
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
    let (mut counts, mut starts) = (Vec::new(), BTreeSet::new());
    let (mut runs, mut answering) = (BTreeSet::new(), BTreeSet::new());
    for code in left {
        match code {
            Doing::Attempt(task) => {
                let row = shared.store().task(task)?;
                counts.extend(row.map(|row| CrashCount::Task { task, crash_count: row.crash_count + 1 }));
            }
            Doing::Run(run) => _ = runs.insert(run),
            Doing::Answer(run) => _ = (runs.insert(run), answering.insert(run)),
            Doing::Start(start) => _ = starts.insert(start),
            _ => {}
        }
    }
    for run in runs {
        let Some(mut row) = shared.store().run(run)? else { continue };
        row.crash_count += 1;
        counts.push(count_run(shared, &row));
    }
    if !counts.is_empty() && !write_now(shared, Write::CrashCounts(counts))? {
        return Ok(false);
    }
    shared.store().forget_left();
    expect_probation(shared, starts, answering)?;
    Ok(true)
}

fn count_run(shared: &Shared, row: &RunRow) -> CrashCount {
    let now = shared.now();
    let stuck = match shared.options.crash_limits.quarantines(row.crash_count) {
        true => Some(quarantine_reason(row).into_stuck(now, 1, now)),
        false => row.stuck.clone(),
    };
    CrashCount::Run { run: row.no, crash_count: row.crash_count, stuck }
}

/// Puts the runs with a crash count on probation, so that they are played one at a time; some of them are delayed.
fn expect_probation(
    shared: &Shared,
    mut starts: BTreeSet<u64>,
    answering: BTreeSet<dacapo_store::RunNo>,
) -> Result<(), StoreError> {
    let (now, limits) = (shared.now(), &shared.options.crash_limits);
    let mut with_crash_count: BTreeSet<_> = shared.store().runs_with_crash_count()?.into_iter().collect();
    for (_, run) in &with_crash_count {
        // A caller that starts the run again, with the same request, must not have its first turn played beside the
        // run.
        starts.extend(shared.store().run(*run)?.map(|row| start_no(&row.workflow_id)));
    }
    with_crash_count.retain(|(count, _)| !limits.quarantines(*count));
    let delayed: BTreeMap<_, _> =
        with_crash_count.iter().filter_map(|(count, run)| Some((*run, limits.delayed_until(*count, now)?))).collect();
    with_crash_count.retain(|(_, run)| !delayed.contains_key(run));
    shared.probation.expect(with_crash_count, delayed, starts, answering);
    Ok(())
}

/// Submits a write, and waits for it. False if the store does not answer.
fn write_now(shared: &Arc<Shared>, write: Write) -> Result<bool, StoreError> {
    let (tell, told) = mpsc::channel();
    submit(shared, write, move |_, result| drop(tell.send(result)));
    told.recv().map_or(Ok(false), |answer| answer.map(|_| true))
}
