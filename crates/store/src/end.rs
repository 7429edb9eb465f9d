//! How a run ends without a turn of its own, and how the end of a run reaches its parent and its children.

use dacapo_core::{
    ChildFailed, Failure, FailureKind, Job, Outcome, ParentClose, Resolution, Seq, Timestamp, to_stored,
};

use crate::rows::Rows;
use crate::send::{reply, send};
use crate::{ClosedRun, NewMessage, Parent, Refused, RunNo, RunRow, Status, StoreError, TurnWritten};

type Result<T> = std::result::Result<T, StoreError>;

/// The operation of a child whose parent continued as another run: no run awaits it any more.
const INHERITED: Seq = Seq(u64::MAX);

/// Ends a run without a turn of its own, and releases its children.
pub(crate) fn end(
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
    let result = to_stored(&outcome);
    rows.close(row.no, status, at, &result)?;
    rows.delete_tasks(row.no)?;
    written.closed.push(ClosedRun::of(row, status, result));
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
        let job = Job::resolve(parent.seq, resolution);
        tell_parent(rows, row, parent, at, to_stored(&job), written)?;
    }
    Ok(())
}

pub(crate) fn tell_parent(
    rows: &mut impl Rows,
    row: &RunRow,
    parent: &Parent,
    at: Timestamp,
    job: Vec<u8>,
    written: &mut TurnWritten,
) -> Result<()> {
    // The run that the parent's chain continued as has other operations and awaits no child of the run before.
    if parent.seq != INHERITED && rows.run(parent.run)?.is_some_and(|parent| parent.status.is_open()) {
        let message = NewMessage { key: format!("child:{}", row.run_id).into(), sent: at, job };
        written.sent.push(send(rows, parent.run, &message)?);
    }
    Ok(())
}

/// Releases the children of a closed run: they go on, are asked to cancel, or end with it.
pub(crate) fn release_children(
    rows: &mut impl Rows,
    run: RunNo,
    at: Timestamp,
    written: &mut TurnWritten,
) -> Result<()> {
    // A list and not recursion: a tree of children may be deeper than a stack.
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
