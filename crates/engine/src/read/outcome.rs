//! The end of runs, as the store keeps it.

use dacapo_client::Error;
use dacapo_core::{Failure, Name, Outcome, from_stored};
use dacapo_store::{ClosedRun, RunRow, Status};

/// Decodes the result of a run.
pub(crate) fn outcome_of(result: Option<&[u8]>) -> Outcome {
    let unreadable = |why: String| {
        let failure = Failure::application(format!("the result of the run cannot be read: {why}"));
        Outcome::Failed(Box::new(failure))
    };
    match result.map(from_stored) {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => unreadable(error.to_string()),
        None => unreadable("there is none".to_owned()),
    }
}

/// Makes the closed run of a row, as a write that closes a run returns it.
pub(crate) fn closed_run(row: &RunRow) -> ClosedRun {
    ClosedRun::of(row, row.status, row.result.clone().unwrap_or_default())
}

/// Returns the error for runs that continue as each other, so that their chain has no end. The engine makes no such runs: they
/// were imported.
pub(crate) fn circle(run: &RunRow) -> Error {
    Error::Damaged(format!(
        "the runs of workflow id {:?} continue as each other in a circle, by way of run {:?}: they come from a damaged archive. \
         Delete them, and import a sound one",
        run.workflow_id, run.run_id
    ))
}

/// The run that this one continues as, by its result; none if it does not.
pub fn next_of(run: &RunRow) -> Option<Name> {
    next_run(run.status, &from_stored(run.result.as_deref()?).ok()?)
}

/// The run that a run with this status and outcome continues as.
pub(crate) fn next_run(status: Status, outcome: &Outcome) -> Option<Name> {
    match (status, outcome) {
        (Status::ContinuedAsNew, Outcome::Completed(next)) => {
            Some(next.as_text().unwrap_or_default().trim_matches('"').to_owned().into())
        }
        _ => None,
    }
}
