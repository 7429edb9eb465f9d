//! What writes mean, once for all stores: fences first, then rows.

use std::collections::BTreeSet;

use dacapo_core::{
    ChildFailed, Failure, FailureKind, IdReuse, Job, Name, Outcome, ParentClose, Resolution, Seq, Started, Target,
    Timestamp, TurnRecord,
};

use crate::import::import;
use crate::reset::reset;
use crate::rows::Rows;
use crate::{
    AttemptWrite, ClosedRun, Closing, Conflict, Epoch, NewMail, NewRun, Parent, Posted, Refused, RunNo, RunRow, Send,
    StartedRun, Status, StoreError, Strikes, TurnOf, TurnWrite, TurnWritten, Write, Written,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The operation of a child whose parent went on as another run: nobody awaits it any more.
const INHERITED: Seq = Seq(u64::MAX);

/// Applies one write. A refusal has changed nothing; any other error leaves the transaction to be rolled back.
pub fn apply(rows: &mut impl Rows, write: &Write) -> Result<Written> {
    match write {
        Write::Start(new) => {
            let mut effects = TurnWritten::default();
            let run = start(rows, new, &mut effects)?;
            effects.run = run.run;
            Ok(Written::Started { run, effects: Box::new(effects) })
        }
        Write::Turn(turn) => commit_turn(rows, turn).map(|written| Written::Turn(Box::new(written))),
        Write::Post { run, mail, ended } => {
            open_run(rows, *run)?;
            if let Some(task) = ended
                && !rows.delete_task(*task)?
            {
                return Err(Refused::NoSuchTask.into());
            }
            post(rows, *run, mail).map(Written::Posted)
        }
        Write::Settle { run, epoch, mail, tasks } => {
            let row = open_run(rows, *run)?;
            fence(&row, *epoch)?;
            for (no, key, outcome) in mail {
                rows.take_mail(*no, row.turns)?;
                if let Some(outcome) = outcome {
                    rows.set_outcome(*run, key, outcome)?;
                }
            }
            for task in tasks {
                rows.delete_task(*task)?;
            }
            Ok(Written::Done)
        }
        Write::Forget { run, tasks, timers } => {
            if rows.run(*run)?.is_some_and(|row| row.status.is_open()) {
                return Err(Refused::Open.into());
            }
            for task in tasks {
                rows.delete_task(*task)?;
            }
            for (due, kind) in timers {
                rows.delete_timer(*run, *due, *kind)?;
            }
            Ok(Written::Done)
        }
        Write::Attempt(attempt) => note_attempt(rows, attempt),
        Write::Park { run, epoch, stuck } => {
            let row = open_run(rows, *run)?;
            fence(&row, *epoch)?;
            rows.set_stuck(*run, stuck.as_ref())?;
            Ok(Written::Done)
        }
        Write::Strike(all) => all.iter().try_for_each(|strikes| strike(rows, strikes)).map(|()| Written::Done),
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

fn open_run(rows: &mut impl Rows, run: RunNo) -> Result<RunRow> {
    let row = rows.run(run)?.ok_or(Refused::NoSuchRun)?;
    if row.status.is_open() { Ok(row) } else { Err(Refused::Closed(row.status).into()) }
}

fn fence(row: &RunRow, epoch: Epoch) -> Result<()> {
    if row.epoch == epoch { Ok(()) } else { Err(Refused::Fenced { turns: row.turns, epoch: row.epoch }.into()) }
}

/// Starts a run whose first turn comes later: its start job waits as mail.
fn start(rows: &mut impl Rows, new: &NewRun, written: &mut TurnWritten) -> Result<StartedRun> {
    match admit(rows, new, written)? {
        Admitted::Existing(row) => {
            Ok(StartedRun { run: row.no, run_id: row.run_id, fresh: false, ..Default::default() })
        }
        Admitted::New => {
            let run = rows.insert_run(new, 0, None, Epoch::default())?;
            let mail = NewMail { key: Name::from_static("start"), sent: new.started, job: new.start.clone() };
            let mail = rows.insert_mail(run, &mail, None)?;
            furnish(rows, run, new)?;
            Ok(StartedRun { run, run_id: new.run_id.clone(), fresh: true, mail, timers: new.timers.clone() })
        }
    }
}

/// Gives a new run its timers and attributes.
pub(crate) fn furnish(rows: &mut impl Rows, run: RunNo, new: &NewRun) -> Result<()> {
    for (due, kind) in &new.timers {
        rows.insert_timer(run, *due, *kind)?;
    }
    for (name, value) in &new.attributes {
        rows.set_attribute(run, name, Some(value))?;
    }
    Ok(())
}

enum Admitted {
    New,
    Existing(Box<RunRow>),
}

/// Whether a run of this workflow id may be started, or which run stands for it. One that it replaces ends here.
fn admit(rows: &mut impl Rows, new: &NewRun, written: &mut TurnWritten) -> Result<Admitted> {
    if let Some(request) = &new.request
        && let Some(no) = rows.requested_run(request)?
    {
        let row = rows.run(no)?.ok_or(Refused::NoSuchRun)?;
        let same = row.workflow_id == new.workflow_id && row.workflow == new.workflow;
        if !same || !same_input(rows, no, new)? {
            return Err(Refused::OtherRequest(request.clone()).into());
        }
        return Ok(Admitted::Existing(Box::new(row)));
    }
    if let Some(no) = rows.open_run(&new.workflow_id)? {
        let row = rows.run(no)?.ok_or(Refused::NoSuchRun)?;
        let replaces = new.conflict == Conflict::TerminateExisting || new.reuse == IdReuse::TerminateIfRunning;
        return match new.conflict {
            _ if replaces => {
                let failure = Failure::new(FailureKind::Terminated, "another run took its workflow id");
                end(rows, &row, Status::Terminated, new.started, &failure, written)?;
                Ok(Admitted::New)
            }
            Conflict::UseExisting => Ok(Admitted::Existing(Box::new(row))),
            conflict => {
                Err(Refused::InUse { workflow_id: new.workflow_id.clone(), run_id: row.run_id, conflict }.into())
            }
        };
    }
    let last = match new.reuse {
        IdReuse::RejectDuplicate | IdReuse::AllowDuplicateFailedOnly => rows.last_run(&new.workflow_id)?,
        _ => None,
    };
    let Some(row) = last.map(|no| rows.run(no)).transpose()?.flatten() else { return Ok(Admitted::New) };
    let failed = !matches!(row.status, Status::Completed | Status::ContinuedAsNew);
    if new.reuse == IdReuse::AllowDuplicateFailedOnly && failed {
        return Ok(Admitted::New);
    }
    let (workflow_id, run_id, status) = (new.workflow_id.clone(), row.run_id, row.status);
    Err(Refused::Used { workflow_id, run_id, status }.into())
}

/// Whether a run was started with the same input: its start is in its first turn, or still waits as mail.
fn same_input(rows: &mut impl Rows, run: RunNo, new: &NewRun) -> Result<bool> {
    let recorded = rows.turn(run, 0)?.and_then(|bytes| TurnRecord::from_bytes(&bytes).ok());
    let before = match recorded.and_then(|record| record.jobs.into_iter().next()) {
        Some(job) => Some(job),
        None => rows.mail_job(run, "start")?.and_then(|job| minicbor::decode(&job).ok()),
    };
    Ok(match (before, minicbor::decode(&new.start)) {
        (Some(Job::Start(before)), Ok(Job::Start(now))) => before.input == now.input,
        // What cannot be read cannot be compared.
        _ => true,
    })
}

fn commit_turn(rows: &mut impl Rows, write: &TurnWrite) -> Result<TurnWritten> {
    let mut written = TurnWritten::default();
    let run = match &write.run {
        TurnOf::Run(run) => {
            for mail in &write.taken {
                if !rows.is_unseen(*run, *mail)? {
                    // This very turn may have taken it, if the acknowledgement was lost.
                    return lost(rows, *run, write).map_err(|error| match error {
                        StoreError::Refused(Refused::Fenced { .. }) => Refused::TakenMail.into(),
                        error => error,
                    });
                }
            }
            // All that it takes is unseen: if there is more, somebody wrote to it meanwhile.
            if write.close.is_some() {
                let taken: BTreeSet<_> = write.taken.iter().collect();
                if rows.count_unseen(*run)? > taken.len() {
                    return Err(Refused::UnseenMail.into());
                }
            }
            if !rows.advance(*run, write.turn, write.epoch, write.strikes)? {
                return lost(rows, *run, write);
            }
            *run
        }
        TurnOf::New(new) => match admit(rows, new, &mut written)? {
            Admitted::Existing(row) => {
                let (workflow_id, run_id) = (new.workflow_id.clone(), row.run_id);
                return Err(Refused::InUse { workflow_id, run_id, conflict: Conflict::UseExisting }.into());
            }
            Admitted::New => {
                let run = rows.insert_run(new, 1, Some(write.node), write.epoch)?;
                furnish(rows, run, new)?;
                run
            }
        },
    };
    written.run = run;
    rows.insert_turn(run, write.turn, &write.record)?;
    for task in &write.tasks {
        written.tasks.push(rows.insert_task(run, write.turn, task)?);
    }
    for task in &write.ended_tasks {
        rows.delete_task(*task)?;
    }
    for seq in &write.ended_activities {
        rows.delete_task_of(run, *seq)?;
    }
    for (due, kind) in &write.timers {
        rows.insert_timer(run, *due, *kind)?;
    }
    for (due, kind) in &write.ended_timers {
        rows.delete_timer(run, *due, *kind)?;
    }
    for mail in &write.taken {
        rows.take_mail(*mail, write.turn)?;
    }
    for (key, outcome) in &write.outcomes {
        rows.set_outcome(run, key, outcome)?;
    }
    for (name, value) in &write.attributes {
        rows.set_attribute(run, name, value.as_deref())?;
    }
    if let Some(memo) = &write.memo {
        rows.set_memo(run, memo)?;
    }
    if let Some(snapshot) = &write.published {
        rows.set_published(run, snapshot)?;
    }
    for (seq, child) in &write.children {
        start_child(rows, run, *seq, child, write.at, &mut written)?;
    }
    for send in &write.sends {
        deliver(rows, run, send, &mut written)?;
    }
    if let Some(closing) = &write.close {
        close_by_turn(rows, run, closing, write.at, &mut written)?;
    }
    Ok(written)
}

/// The fence did not let the turn through. If what stands in its place is this very turn, the acknowledgement was lost
/// and not the turn.
fn lost(rows: &mut impl Rows, run: RunNo, write: &TurnWrite) -> Result<TurnWritten> {
    let row = rows.run(run)?.ok_or(Refused::NoSuchRun)?;
    let same = row.epoch == write.epoch && rows.turn(run, write.turn)?.is_some_and(|record| record == write.record);
    match row.status {
        _ if same => Ok(TurnWritten { run, ..TurnWritten::default() }),
        status if !status.is_open() => Err(Refused::Closed(status).into()),
        _ => Err(Refused::Fenced { turns: row.turns, epoch: row.epoch }.into()),
    }
}

fn start_child(
    rows: &mut impl Rows,
    parent: RunNo,
    seq: Seq,
    child: &NewRun,
    at: Timestamp,
    written: &mut TurnWritten,
) -> Result<()> {
    // A run that starts with this turn had no number when its children were planned.
    let parent_link = child.parent.clone().map(|link| Parent { run: parent, ..link });
    let child = NewRun { parent: parent_link, ..child.clone() };
    let started = match start(rows, &child, written) {
        Ok(started) => {
            let run_id = started.run_id.clone();
            written.started.push(started);
            Started::As(run_id)
        }
        Err(StoreError::Refused(refused)) => {
            Started::Failed(Box::new(Failure::application(refused.to_string()).typed("AlreadyExists").not_retryable()))
        }
        Err(error) => return Err(error),
    };
    let job = Job::Resolve { seq, resolution: Resolution::ChildStarted(started) };
    reply(rows, parent, format!("child-start:{}", seq.0), at, &job, written)
}

/// Brings mail to another run and tells the sender whether it arrived.
fn deliver(rows: &mut impl Rows, sender: RunNo, send: &Send, written: &mut TurnWritten) -> Result<()> {
    let (workflow_id, wanted) = match &send.to {
        Target::Workflow { workflow_id, run_id, .. } => (workflow_id, run_id.as_ref()),
        Target::Child { workflow_id } => (workflow_id, None),
    };
    let open = match rows.open_run(workflow_id)? {
        Some(no) => rows.run(no)?.filter(|row| wanted.is_none_or(|wanted| *wanted == row.run_id)),
        None => None,
    };
    let failure = match open {
        Some(row) => {
            written.posted.push(post(rows, row.no, &send.mail)?);
            None
        }
        None => {
            let message = format!("no open run of workflow id {workflow_id:?}");
            Some(Box::new(Failure::application(message).typed("NotFound").not_retryable()))
        }
    };
    let resolution = match send.is_cancel {
        true => Resolution::CancelExternal { failure },
        false => Resolution::SignalExternal { failure },
    };
    let Some(seq) = send.seq else { return Ok(()) };
    let job = Job::Resolve { seq, resolution };
    reply(rows, sender, format!("sent:{}", seq.0), send.mail.sent, &job, written)
}

pub(crate) fn post(rows: &mut impl Rows, run: RunNo, mail: &NewMail) -> Result<Posted> {
    let job = mail.job.clone();
    match rows.insert_mail(run, mail, None)? {
        Some(no) => Ok(Posted { run, no, job, fresh: true }),
        None => Ok(Posted { run, no: rows.mail_of_key(run, &mail.key)?.unwrap_or_default(), job, fresh: false }),
    }
}

fn reply(
    rows: &mut impl Rows,
    run: RunNo,
    key: String,
    sent: Timestamp,
    job: &Job,
    written: &mut TurnWritten,
) -> Result<()> {
    let job = minicbor::to_vec(job).expect("writing to memory cannot fail");
    written.posted.push(post(rows, run, &NewMail { key: key.into(), sent, job })?);
    Ok(())
}

fn close_by_turn(
    rows: &mut impl Rows,
    run: RunNo,
    closing: &Closing,
    at: Timestamp,
    written: &mut TurnWritten,
) -> Result<()> {
    let row = rows.run(run)?.ok_or(Refused::NoSuchRun)?;
    rows.close(run, closing.status, at, &closing.result)?;
    match (&closing.next, &row.parent, &closing.to_parent) {
        (Some(next), _, _) => {
            // The chain goes on under the same parent, and its children with it.
            let started = start(rows, next, written)?;
            for (child, _) in rows.open_children(run)? {
                rows.hand_over(child, started.run)?;
            }
            for mail in &closing.carried {
                post(rows, started.run, mail)?;
            }
            written.started.push(started);
            return Ok(());
        }
        (None, Some(parent), Some(job)) => tell_parent(rows, &row, parent, at, job.clone(), written)?,
        _ => {}
    }
    release_children(rows, run, at, written)
}

/// Ends a run from outside, and what hangs on it.
fn end(
    rows: &mut impl Rows,
    row: &RunRow,
    status: Status,
    at: Timestamp,
    failure: &Failure,
    written: &mut TurnWritten,
) -> Result<()> {
    end_one(rows, row, status, at, failure, written)?;
    release_children(rows, row.no, at, written)
}

fn end_one(
    rows: &mut impl Rows,
    row: &RunRow,
    status: Status,
    at: Timestamp,
    failure: &Failure,
    written: &mut TurnWritten,
) -> Result<()> {
    let outcome = Outcome::Failed(Box::new(failure.clone()));
    let result = minicbor::to_vec(&outcome).expect("writing to memory cannot fail");
    rows.close(row.no, status, at, &result)?;
    rows.delete_tasks(row.no)?;
    written.closed.push(ClosedRun { run: row.no, first_run_id: row.first_run_id.clone(), status, result });
    if let Some(parent) = &row.parent {
        let child = ChildFailed {
            workflow: row.workflow.clone(),
            workflow_id: row.workflow_id.clone(),
            run_id: row.run_id.clone(),
            ..ChildFailed::default()
        };
        let message = format!("child workflow {} is {status}", row.workflow);
        let failure = Failure::new(FailureKind::Child(Box::new(child)), message).caused_by(failure.clone());
        let resolution = Resolution::Child(Outcome::Failed(Box::new(failure)));
        let job = Job::Resolve { seq: parent.seq, resolution };
        tell_parent(rows, row, parent, at, minicbor::to_vec(&job).expect("writing to memory cannot fail"), written)?;
    }
    Ok(())
}

fn tell_parent(
    rows: &mut impl Rows,
    row: &RunRow,
    parent: &Parent,
    at: Timestamp,
    job: Vec<u8>,
    written: &mut TurnWritten,
) -> Result<()> {
    // The run that a chain went on as has other operations, and awaits none of this.
    if parent.seq != INHERITED && rows.run(parent.run)?.is_some_and(|parent| parent.status.is_open()) {
        let mail = NewMail { key: format!("child:{}", row.run_id).into(), sent: at, job };
        written.posted.push(post(rows, parent.run, &mail)?);
    }
    Ok(())
}

/// A run is closed: its children go on, are asked to cancel, or end with it.
pub(crate) fn release_children(
    rows: &mut impl Rows,
    run: RunNo,
    at: Timestamp,
    written: &mut TurnWritten,
) -> Result<()> {
    // A list and no recursion: a tree of children may be deeper than a stack.
    let mut closed = vec![run];
    while let Some(run) = closed.pop() {
        for (child, policy) in rows.open_children(run)? {
            match policy {
                ParentClose::Abandon => {}
                ParentClose::RequestCancel => {
                    let job = Job::Cancel { reason: "the parent closed".to_owned() };
                    reply(rows, child, "parent-closed".to_owned(), at, &job, written)?;
                }
                _ => {
                    let row = rows.run(child)?.ok_or(Refused::NoSuchRun)?;
                    let failure = Failure::new(FailureKind::Terminated, "the parent closed");
                    end_one(rows, &row, Status::Terminated, at, &failure, written)?;
                    closed.push(child);
                }
            }
        }
    }
    Ok(())
}

fn strike(rows: &mut impl Rows, strikes: &Strikes) -> Result<()> {
    match strikes {
        Strikes::Task { task, strikes } => rows.strike_task(*task, *strikes),
        Strikes::Cleared(run) => rows.strike_run(*run, 0),
        Strikes::Run { run, strikes, stuck } => {
            let Some(row) = rows.run(*run)? else { return Ok(()) };
            rows.strike_run(*run, *strikes)?;
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
