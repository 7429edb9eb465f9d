//! Commits a turn: first the fence, then all rows that follow from the turn.

use std::collections::BTreeSet;

use dacapo_core::{Failure, Job, Resolution, Seq, StartOutcome, Target, Timestamp};

use crate::end::{release_children, tell_parent};
use crate::rows::Rows;
use crate::send::{reply, send};
use crate::start::{Admitted, admit, furnish, start};
use crate::{
    Closing, IdConflict, NewRun, OutgoingMessage, Parent, Refused, RunNo, StoreError, TurnOf, TurnWrite, TurnWritten,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The answer of the fence to a turn.
enum Fence {
    /// The turn is the next one of this run.
    Passed(RunNo),
    /// The turn was committed before, and its acknowledgement was lost.
    Repeated(TurnWritten),
}

pub(crate) fn commit_turn(rows: &mut impl Rows, write: &TurnWrite) -> Result<TurnWritten> {
    let mut written = TurnWritten::default();
    let passed = match &write.run {
        TurnOf::Run(run) => pass_fence(rows, *run, write)?,
        TurnOf::New(new) => Fence::Passed(start_with_turn(rows, new, write, &mut written)?),
    };
    let run = match passed {
        Fence::Passed(run) => run,
        Fence::Repeated(written) => return Ok(written),
    };
    written.run = run;
    insert_rows(rows, run, write, &mut written)?;
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

/// Counts the turn, if it is the next one of its run and, where it closes the run, takes all unseen messages.
fn pass_fence(rows: &mut impl Rows, run: RunNo, write: &TurnWrite) -> Result<Fence> {
    for message in &write.taken {
        if !rows.is_unseen(run, *message)? {
            // This turn itself may have taken the message, if the acknowledgement was lost.
            return lost(rows, run, write).map(Fence::Repeated).map_err(|error| match error {
                StoreError::Refused(Refused::Fenced { .. }) => Refused::MessageTaken.into(),
                error => error,
            });
        }
    }
    // All messages that the turn takes are unseen. If there are more, they were sent meanwhile.
    if write.close.is_some() {
        let taken: BTreeSet<_> = write.taken.iter().collect();
        if rows.count_unseen(run)? > taken.len() {
            return Err(Refused::UnseenMessages.into());
        }
    }
    match rows.advance(run, write.turn, write.epoch, write.crash_count)? {
        true => Ok(Fence::Passed(run)),
        false => lost(rows, run, write).map(Fence::Repeated),
    }
}

/// Starts a run together with its first turn.
fn start_with_turn(rows: &mut impl Rows, new: &NewRun, write: &TurnWrite, written: &mut TurnWritten) -> Result<RunNo> {
    match admit(rows, new, written)? {
        Admitted::Existing(row) => {
            let (workflow_id, run_id) = (new.workflow_id.clone(), row.run_id);
            Err(Refused::InUse { workflow_id, run_id, conflict: IdConflict::UseExisting }.into())
        }
        Admitted::New => {
            let run = rows.insert_run(new, 1, Some(write.node), write.epoch)?;
            furnish(rows, run, new)?;
            Ok(run)
        }
    }
}

/// Writes the turn, and the rows of its own run that follow from it.
fn insert_rows(rows: &mut impl Rows, run: RunNo, write: &TurnWrite, written: &mut TurnWritten) -> Result<()> {
    rows.insert_turn(run, write.turn, &write.record)?;
    for task in &write.tasks {
        written.tasks.push(rows.insert_task(run, write.turn, task)?);
    }
    for task in &write.ended_tasks {
        rows.remove_task(*task)?;
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
    for message in &write.taken {
        rows.take_message(*message, write.turn)?;
    }
    for (key, outcome) in &write.outcomes {
        rows.set_outcome(run, key, outcome)?;
    }
    for (name, value) in &write.attributes {
        rows.set_attribute(run, name, value.as_ref())?;
    }
    if let Some(memo) = &write.memo {
        rows.set_memo(run, memo)?;
    }
    if let Some(snapshot) = &write.published {
        rows.set_published(run, snapshot)?;
    }
    Ok(())
}

/// Decides about a turn that the fence refused. If the recorded turn of this number is the same turn, only the
/// acknowledgement was lost.
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
    // The number of a run that starts with this turn was not known when its children were planned.
    let parent_link = child.parent.clone().map(|link| Parent { run: parent, ..link });
    let child = NewRun { parent: parent_link, ..child.clone() };
    let started = match start(rows, &child, written) {
        Ok(started) => {
            let run_id = started.run_id.clone();
            written.started.push(started);
            StartOutcome::As(run_id)
        }
        Err(StoreError::Refused(refused)) => StartOutcome::Failed(Box::new(
            Failure::application(refused.to_string()).typed("AlreadyExists").non_retryable(),
        )),
        Err(error) => return Err(error),
    };
    let job = Job::resolve(seq, Resolution::ChildStarted(started));
    reply(rows, parent, format!("child-start:{}", seq.0), at, &job, written)
}

/// Stores a message for another run, and replies to the sender whether it was stored.
fn deliver(rows: &mut impl Rows, sender: RunNo, message: &OutgoingMessage, written: &mut TurnWritten) -> Result<()> {
    let (workflow_id, wanted) = match &message.to {
        Target::Workflow { workflow_id, run_id, .. } => (workflow_id, run_id.as_ref()),
        Target::Child { workflow_id } => (workflow_id, None),
    };
    let open = match rows.open_run(workflow_id)? {
        Some(no) => rows.run(no)?.filter(|row| wanted.is_none_or(|wanted| *wanted == row.run_id)),
        None => None,
    };
    let failure = match open {
        Some(row) => {
            written.sent.push(send(rows, row.no, &message.message)?);
            None
        }
        None => {
            let text = format!("there is no open run of workflow id {workflow_id:?}: check the id, or start it first");
            Some(Box::new(Failure::application(text).typed("NotFound").non_retryable()))
        }
    };
    let resolution = match message.is_cancel {
        true => Resolution::CancelExternal { failure },
        false => Resolution::SignalExternal { failure },
    };
    let Some(seq) = message.seq else { return Ok(()) };
    let job = Job::resolve(seq, resolution);
    reply(rows, sender, format!("sent:{}", seq.0), message.message.sent, &job, written)
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
            // The chain continues under the same parent, and keeps its children.
            let started = start(rows, next, written)?;
            for (child, _) in rows.open_children(run)? {
                rows.hand_over(child, started.run)?;
            }
            for message in &closing.carried {
                send(rows, started.run, message)?;
            }
            written.started.push(started);
            return Ok(());
        }
        (None, Some(parent), Some(job)) => tell_parent(rows, &row, parent, at, job.clone(), written)?,
        _ => {}
    }
    release_children(rows, run, at, written)
}
