//! Imported runs: their numbers among the runs of this store.

use dacapo_core::Timestamp;

use crate::rows::Rows;
use crate::{Belongings, ImportWrite, NewMessage, Refused, RunNo, RunRow, Shard, StoreError, Written};

type Result<T> = std::result::Result<T, StoreError>;

/// The range of numbers that is searched for a free one at once. Numbers rise with microseconds, so this is about the
/// same moment.
const NEAR: i64 = 1_000;

/// Adds a closed run. The run with the highest number of a workflow id counts as its last one. So a run that started
/// later than the last one here gets the next number. Any other gets a number before all of them, in the order of their
/// starts.
pub(crate) fn import(rows: &mut impl Rows, write: &ImportWrite) -> Result<Written> {
    let ImportWrite { run: row, turns, belongings } = write;
    if row.status.is_open() {
        return Err(Refused::Open.into());
    }
    if rows.run_of_id(&row.run_id)?.is_some() {
        return Err(Refused::Exists(row.run_id.clone()).into());
    }
    let Belongings { request, attributes, messages } = belongings;
    let request = match request {
        Some(request) if rows.requested_run(request)?.is_none() => Some(request),
        _ => None,
    };
    let no = if is_last(rows, row)? { None } else { Some(early_no(rows, row.started)?) };
    let run = rows.insert_closed(row, request, no)?;
    for (turn, record) in (0..).zip(turns) {
        rows.insert_turn(run, turn, record)?;
    }
    for (name, value) in attributes {
        rows.set_attribute(run, name, Some(value))?;
    }
    for message in messages {
        let new = NewMessage { key: message.key.clone(), sent: message.sent, job: message.job.clone() };
        rows.insert_message(run, &new, message.taken)?;
        if let Some(outcome) = &message.outcome {
            rows.set_outcome(run, &message.key, outcome)?;
        }
    }
    Ok(Written::Done)
}

fn is_last(rows: &mut impl Rows, row: &RunRow) -> Result<bool> {
    let last = rows.last_run(&row.workflow_id)?.map(|no| rows.run(no)).transpose()?.flatten();
    Ok(last.is_none_or(|last| last.started <= row.started))
}

/// Returns a free number below all that stores give by themselves; it rises with the run's start.
fn early_no(rows: &mut impl Rows, started: Timestamp) -> Result<RunNo> {
    // Shifting leaves room for the shard: a number is about a microsecond.
    let started = i64::try_from(started.0).unwrap_or(i64::MAX) >> Shard::BITS;
    let lowest = i64::MIN >> Shard::BITS;
    let mut no = RunNo::new(lowest + started.min(i64::MAX >> (Shard::BITS + 1)), Shard(0));
    while let Some(taken) = rows.last_no(no, RunNo::new(no.sequence() + NEAR, Shard(0)))? {
        no = RunNo::new(taken.sequence() + 1, Shard(0));
    }
    Ok(no)
}
