//! How a run starts, and whether the store admits it.

use dacapo_core::{Failure, FailureKind, IdReuse, Job, Name, Payload, TurnRecord, from_stored};

use crate::end::end;
use crate::rows::Rows;
use crate::{
    Epoch, IdConflict, NewMessage, NewRun, Refused, RunNo, RunRow, StartedRun, Status, StoreError, TurnWritten,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Starts a run whose first turn comes later: its start job is stored as a message.
pub(crate) fn start(rows: &mut impl Rows, new: &NewRun, written: &mut TurnWritten) -> Result<StartedRun> {
    match admit(rows, new, written)? {
        Admitted::Existing(row) => {
            let workflow = row.workflow;
            Ok(StartedRun { run: row.no, run_id: row.run_id, fresh: false, workflow, ..Default::default() })
        }
        Admitted::New => {
            let run = rows.insert_run(new, 0, None, Epoch::default())?;
            let message = NewMessage { key: Name::from_static("start"), sent: new.started, job: new.start.clone() };
            let message = rows.insert_message(run, &message, None)?;
            furnish(rows, run, new)?;
            let (run_id, workflow, timers) = (new.run_id.clone(), new.workflow.clone(), new.timers.clone());
            Ok(StartedRun { run, run_id, fresh: true, message, timers, workflow })
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

pub(crate) enum Admitted {
    New,
    Existing(Box<RunRow>),
}

/// Decides whether a run of this workflow id may be started, or returns the existing run. A run that the new one
/// replaces ends here.
pub(crate) fn admit(rows: &mut impl Rows, new: &NewRun, written: &mut TurnWritten) -> Result<Admitted> {
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
        let replaces = new.conflict == IdConflict::TerminateExisting || new.reuse == IdReuse::TerminateIfRunning;
        return match new.conflict {
            // This very start comes again, because its answer was lost: it must not end the run that it has started.
            _ if replaces && row.run_id == new.run_id => Ok(Admitted::Existing(Box::new(row))),
            _ if replaces => {
                let failure = Failure::new(FailureKind::Terminated, "another run took its workflow id");
                end(rows, &row, Status::Terminated, new.started, &failure, written)?;
                Ok(Admitted::New)
            }
            IdConflict::UseExisting => Ok(Admitted::Existing(Box::new(row))),
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

/// Returns whether a run was started with the same input: its start is in its first turn, or still a message.
fn same_input(rows: &mut impl Rows, run: RunNo, new: &NewRun) -> Result<bool> {
    let recorded = rows.turn(run, 0)?.and_then(|bytes| TurnRecord::from_bytes(&bytes).ok());
    let before = match recorded.and_then(|record| record.jobs.into_iter().next()) {
        Some(job) => Some(job),
        None => rows.message_job(run, "start")?.and_then(|job| from_stored(&job).ok()),
    };
    Ok(match (before, from_stored(&new.start)) {
        (Some(Job::Start(before)), Ok(Job::Start(now))) => {
            let same = |(before, now): (&Payload, &Payload)| before.has_meaning_of(now);
            before.input.len() == now.input.len() && before.input.iter().zip(&now.input).all(same)
        }
        // A start that cannot be decoded cannot be compared.
        _ => true,
    })
}
