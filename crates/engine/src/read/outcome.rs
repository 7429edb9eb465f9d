//! The end of runs, as the store keeps it.

use dacapo_client::Error;
use dacapo_core::{Failure, Name, Outcome, Payload, from_stored};
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

/// The end of a closed run, as callers see it.
pub(crate) struct End {
    /// Its result; none if another run goes on.
    pub(crate) result: Option<Result<Payload, Failure>>,
    /// The run that goes on, if one does.
    pub(crate) next_run_id: Option<Name>,
}

/// Reads the end of a closed run from its row: the result of a run that goes on as another is the id of that one.
pub(crate) fn end_of(row: &RunRow) -> End {
    let outcome = outcome_of(row.result.as_deref());
    match next_run(row.status, &outcome) {
        next_run_id @ Some(_) => End { result: None, next_run_id },
        None => End { result: Some(outcome.into()), next_run_id: None },
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
