//! Reset: a new run starts from a point of another run's history. That history does not change: the new run has a copy
//! of the turns it keeps.

use dacapo_core::{Outcome, to_stored};

use crate::end::release_children;
use crate::rows::Rows;
use crate::send::send;
use crate::start::furnish;
use crate::{ClosedRun, Epoch, NewRun, Refused, ResetWrite, RunNo, RunRow, Status, StoreError, TurnWritten};

type Result<T> = std::result::Result<T, StoreError>;

pub(crate) fn reset(rows: &mut impl Rows, write: &ResetWrite) -> Result<TurnWritten> {
    let row = rows.run(write.from)?.ok_or(Refused::NoSuchRun)?;
    if let Some(run) = requested(rows, &write.new)? {
        return Ok(TurnWritten { run, ..TurnWritten::default() });
    }
    if write.keep == 0 || write.keep > row.turns {
        return Err(Refused::NoSuchTurn { turn: write.keep, turns: row.turns }.into());
    }
    if row.turns != write.turns {
        return Err(Refused::MovedOn.into());
    }
    refuse_other(rows, write)?;
    let mut written = TurnWritten::default();
    if row.status.is_open() {
        let outcome = Outcome::Failed(write.failure.clone());
        let result = to_stored(&outcome);
        rows.close(row.no, Status::Terminated, write.at, &result)?;
        rows.delete_tasks(row.no)?;
        written.closed.push(ClosedRun::of(&row, Status::Terminated, result));
    }
    let run = begin(rows, &row, write)?;
    written.run = run;
    for (turn, task) in &write.tasks {
        written.tasks.push(rows.insert_task(run, *turn, task)?);
    }
    for message in &write.messages {
        written.sent.push(send(rows, run, message)?);
    }
    for (turn, message) in &write.taken {
        rows.insert_message(run, message, Some(*turn))?;
    }
    // Messages that the old run has not taken go to the new run.
    if row.status.is_open() {
        rows.move_unseen(row.no, run)?;
    }
    adopt(rows, &row, run, write)?;
    if row.status.is_open() {
        release_children(rows, row.no, write.at, &mut written)?;
    }
    Ok(written)
}

/// Returns the run that the same request made before.
fn requested(rows: &mut impl Rows, new: &NewRun) -> Result<Option<RunNo>> {
    let Some(request) = &new.request else { return Ok(None) };
    let Some(no) = rows.requested_run(request)? else { return Ok(None) };
    let row = rows.run(no)?.ok_or(Refused::NoSuchRun)?;
    match row.workflow_id == new.workflow_id && row.workflow == new.workflow {
        true => Ok(Some(no)),
        false => Err(Refused::OtherRequest(request.clone()).into()),
    }
}

/// Refuses the reset if another run has taken the workflow id since.
fn refuse_other(rows: &mut impl Rows, write: &ResetWrite) -> Result<()> {
    let new = &write.new;
    let Some(other) = rows.open_run(&new.workflow_id)?.filter(|other| *other != write.from) else { return Ok(()) };
    let run_id = rows.run(other)?.ok_or(Refused::NoSuchRun)?.run_id;
    Err(Refused::InUse { workflow_id: new.workflow_id.clone(), run_id, conflict: new.conflict }.into())
}

/// Inserts the new run, with the turns it keeps.
fn begin(rows: &mut impl Rows, old: &RunRow, write: &ResetWrite) -> Result<RunNo> {
    // The parent of an open run still waits for it, so the new run takes its place. The parent of a closed run has its
    // answer, and a second answer would be an error there.
    let parent = old.parent.clone().filter(|_| old.status.is_open());
    let new = NewRun { parent, ..write.new.clone() };
    let run = rows.insert_run(&new, write.keep, None, Epoch::default())?;
    rows.copy_turns(old.no, run, write.keep)?;
    furnish(rows, run, &new)?;
    Ok(run)
}

/// Moves the children that the kept turns started to the new run, which still awaits them.
fn adopt(rows: &mut impl Rows, old: &RunRow, run: RunNo, write: &ResetWrite) -> Result<()> {
    for (child, _) in rows.open_children(old.no)? {
        let row = rows.run(child)?.ok_or(Refused::NoSuchRun)?;
        if row.parent.is_some_and(|parent| write.children.contains(&parent.seq)) {
            rows.set_parent(child, run)?;
        }
    }
    Ok(())
}
