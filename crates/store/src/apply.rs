//! Applies writes, once for all stores: first the fence, then the rows.

use dacapo_core::{Name, Timestamp};

use crate::end::end;
use crate::import::import;
use crate::reset::reset;
use crate::rows::Rows;
use crate::send::send;
use crate::start::start;
use crate::turn::commit_turn;
use crate::{
    AttemptWrite, CrashCount, Epoch, MessageNo, Refused, RunNo, RunRow, StoreError, TaskNo, TimerKind, TurnWritten,
    Write, Written,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Applies one write. A refused write changes nothing; after any other error the transaction has to be rolled back.
pub fn apply(rows: &mut impl Rows, write: &Write) -> Result<Written> {
    match write {
        Write::Start(new) => {
            let mut effects = TurnWritten::default();
            let run = start(rows, new, &mut effects)?;
            effects.run = run.run;
            Ok(Written::Started { run, effects: Box::new(effects) })
        }
        Write::Turn(turn) => commit_turn(rows, turn).map(|written| Written::Turn(Box::new(written))),
        Write::Send { run, message, ended } => {
            open_run(rows, *run)?;
            if let Some(task) = ended
                && !rows.delete_task(*task)?
            {
                return Err(Refused::NoSuchTask.into());
            }
            let mut sent = send(rows, *run, message)?;
            if sent.fresh && rows.is_shared() {
                sent.unseen = rows.count_unseen(*run)?;
            }
            Ok(Written::Sent(sent))
        }
        Write::Settle { run, epoch, turn, messages, tasks } => settle(rows, *run, (*epoch, *turn), messages, tasks),
        Write::Forget { run, tasks, timers } => forget(rows, *run, tasks, timers),
        Write::Attempt(attempt) => note_attempt(rows, attempt),
        Write::SetStuck { run, epoch, stuck } => {
            let row = open_run(rows, *run)?;
            fence(&row, *epoch)?;
            rows.set_stuck(*run, stuck.as_ref())?;
            Ok(Written::Done)
        }
        Write::CrashCounts(all) => {
            all.iter().try_for_each(|count| check_crash_count(rows, count))?;
            all.iter().try_for_each(|count| set_crash_count(rows, count)).map(|()| Written::Done)
        }
        Write::Close { run, status, at, failure } => {
            let row = open_run(rows, *run)?;
            let mut written = TurnWritten { run: *run, ..TurnWritten::default() };
            end(rows, &row, *status, *at, failure, &mut written)?;
            Ok(Written::Turn(Box::new(written)))
        }
        Write::Reset(write) => reset(rows, write).map(|written| Written::Turn(Box::new(written))),
        Write::Delete { run } => {
            let row = rows.run(*run)?.ok_or(Refused::NoSuchRun)?;
            if row.status.is_open() {
                return Err(Refused::Open.into());
            }
            rows.delete_run(*run)?;
            Ok(Written::Done)
        }
        Write::Expire { runs, before } => {
            for run in runs {
                if rows.run(*run)?.is_some_and(|row| row.closed.is_some_and(|closed| closed < *before)) {
                    rows.delete_run(*run)?;
                }
            }
            Ok(Written::Done)
        }
        Write::Import(write) => import(rows, write),
        Write::Sweep { most } => Ok(Written::Swept { more: rows.sweep(*most)? }),
        Write::Own { run, seen, node, epoch } => {
            if rows.own(*run, *seen, *node, *epoch)? {
                return Ok(Written::Done);
            }
            let row = open_run(rows, *run)?;
            Err(Refused::Fenced { turns: row.turns, epoch: row.epoch }.into())
        }
    }
}

fn settle(
    rows: &mut impl Rows,
    run: RunNo,
    (epoch, turn): (Epoch, u64),
    messages: &[(MessageNo, Name, Option<Vec<u8>>)],
    tasks: &[TaskNo],
) -> Result<Written> {
    let row = open_run(rows, run)?;
    fence(&row, epoch)?;
    if row.turns != turn {
        return Err(Refused::Fenced { turns: row.turns, epoch: row.epoch }.into());
    }
    for (no, key, outcome) in messages {
        rows.take_message(*no, row.turns)?;
        if let Some(outcome) = outcome {
            rows.set_outcome(run, key, outcome)?;
        }
    }
    tasks.iter().try_for_each(|task| rows.remove_task(*task))?;
    Ok(Written::Done)
}

fn forget(rows: &mut impl Rows, run: RunNo, tasks: &[TaskNo], timers: &[(Timestamp, TimerKind)]) -> Result<Written> {
    if rows.run(run)?.is_some_and(|row| row.status.is_open()) {
        return Err(Refused::Open.into());
    }
    tasks.iter().try_for_each(|task| rows.remove_task(*task))?;
    timers.iter().try_for_each(|(due, kind)| rows.delete_timer(run, *due, *kind))?;
    Ok(Written::Done)
}

fn open_run(rows: &mut impl Rows, run: RunNo) -> Result<RunRow> {
    let row = rows.run(run)?.ok_or(Refused::NoSuchRun)?;
    if row.status.is_open() { Ok(row) } else { Err(Refused::Closed(row.status).into()) }
}

fn fence(row: &RunRow, epoch: Epoch) -> Result<()> {
    if row.epoch == epoch { Ok(()) } else { Err(Refused::Fenced { turns: row.turns, epoch: row.epoch }.into()) }
}

/// Refuses to count a death for a run that another node has counted one for.
fn check_crash_count(rows: &mut impl Rows, crash_count: &CrashCount) -> Result<()> {
    let CrashCount::Died { run, seen, turn, .. } = crash_count else { return Ok(()) };
    match dead_run(rows, *run, *turn)? {
        Some(row) if row.crash_count != *seen => Err(Refused::MovedOn.into()),
        _ => Ok(()),
    }
}

/// Returns the run for which a death is to be counted. None if it is gone, or has gone on.
fn dead_run(rows: &mut impl Rows, run: RunNo, turn: Option<u64>) -> Result<Option<RunRow>> {
    Ok(rows.run(run)?.filter(|row| turn.is_none_or(|turn| row.turns <= turn)))
}

fn set_crash_count(rows: &mut impl Rows, crash_count: &CrashCount) -> Result<()> {
    match crash_count {
        CrashCount::Died { run, seen, turn, stuck } => {
            let Some(row) = dead_run(rows, *run, *turn)? else { return Ok(()) };
            rows.set_run_crash_count(*run, seen + 1)?;
            match stuck {
                Some(stuck) if row.status.is_open() => rows.set_stuck(*run, Some(stuck)),
                _ => Ok(()),
            }
        }
        CrashCount::Task { task, crash_count } => rows.set_task_crash_count(*task, *crash_count),
        CrashCount::Cleared(run) => rows.set_run_crash_count(*run, 0),
        CrashCount::Run { run, crash_count, stuck } => {
            let Some(row) = rows.run(*run)? else { return Ok(()) };
            rows.set_run_crash_count(*run, *crash_count)?;
            if row.status.is_open() { rows.set_stuck(*run, stuck.as_ref()) } else { Ok(()) }
        }
    }
}

fn note_attempt(rows: &mut impl Rows, attempt: &AttemptWrite) -> Result<Written> {
    match rows.update_task(attempt)? {
        true => Ok(Written::Done),
        false => Err(Refused::NoSuchTask.into()),
    }
}
