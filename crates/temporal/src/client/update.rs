//! Updates: sent once under their id, and waited for by it.

use dacapo_client::{Error, PollUpdate, Result, RunRef, SendUpdate, UpdateState, UpdateWait};
use dacapo_core::Name;
use tonic::Code;

use super::refusals::refused_for;
use super::rpc::{Rpc, execution, send};
use super::start::header;
use super::stuck::stuck_of;
use crate::convert::{failure_from_proto, first_from_proto, is_rejection, payloads_to_proto};
use crate::proto::enums::UpdateWorkflowExecutionLifecycleStage as Stage;
use crate::proto::service::{PollWorkflowExecutionUpdateRequest, UpdateWorkflowExecutionRequest};
use crate::proto::update;
use crate::reserved;

pub(super) async fn update(rpc: &Rpc, run: &RunRef, update: SendUpdate) -> Result<UpdateState> {
    reserved::check_name("update", &update.name)?;
    reserved::check_headers(&update.headers)?;
    send_update(rpc, run, update).await
}

/// Sends an update of any name, and waits for it as its sender wants.
pub(super) async fn send_update(rpc: &Rpc, run: &RunRef, update: SendUpdate) -> Result<UpdateState> {
    let (stage, mut run) = (stage_of(update.wait), run.clone());
    let mut request = UpdateWorkflowExecutionRequest {
        namespace: rpc.namespace(),
        workflow_execution: Some(execution(&run)),
        wait_policy: Some(update::WaitPolicy { lifecycle_stage: stage as i32 }),
        request: Some(update::Request {
            meta: Some(update::Meta { update_id: update.id.to_string(), identity: rpc.identity() }),
            input: Some(update::Input {
                header: header(&update.headers),
                name: update.name.to_string(),
                args: payloads_to_proto(&update.input),
            }),
            ..update::Request::default()
        }),
        ..UpdateWorkflowExecutionRequest::default()
    };
    loop {
        match send!(rpc, update_workflow_execution, request.clone()).await {
            Ok(answer) => {
                // Another run of the chain does not know of it: there it would be carried out once more.
                run = taken_by(run, answer.update_ref);
                request.workflow_execution = Some(execution(&run));
                if let Some(state) = state_of(answer.outcome, answer.stage, stage)? {
                    return Ok(state);
                }
            }
            // The server waits for less long than the sender does. It does not forget what it has taken.
            Err(status) if matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled) => {}
            Err(status) => return Err(refused_for(status, rpc, &run).await),
        }
        waits(rpc, &run).await?;
    }
}

/// The run that has taken an update, by the server's answer.
fn taken_by(sent_to: RunRef, update: Option<update::UpdateRef>) -> RunRef {
    let run_id = update.and_then(|update| update.workflow_execution).unwrap_or_default().run_id;
    if run_id.is_empty() { sent_to } else { RunRef::exact(sent_to.workflow_id, run_id) }
}

/// Waits for an update that was sent before.
pub(super) async fn poll(rpc: &Rpc, run: &RunRef, poll: PollUpdate) -> Result<UpdateState> {
    let stage = stage_of(poll.wait);
    let request = PollWorkflowExecutionUpdateRequest {
        namespace: rpc.namespace(),
        update_ref: Some(update::UpdateRef {
            workflow_execution: Some(execution(run)),
            update_id: poll.id.to_string(),
        }),
        identity: rpc.identity(),
        wait_policy: Some(update::WaitPolicy { lifecycle_stage: stage as i32 }),
    };
    loop {
        match send!(rpc, poll_workflow_execution_update, request.clone()).await {
            Ok(answer) => {
                if let Some(state) = state_of(answer.outcome, answer.stage, stage)? {
                    return Ok(state);
                }
            }
            Err(status) if matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled) => {}
            Err(status) => {
                let is_missing = status.code() == Code::NotFound;
                let error = refused_for(status, rpc, run).await;
                return Err(if is_missing { update_not_found(error, run, &poll.id) } else { error });
            }
        }
        waits(rpc, run).await?;
    }
}

/// Returns the error of a call that the server answered with "not found": of the run, or of the update in a run that there is.
fn update_not_found(error: Error, run: &RunRef, id: &Name) -> Error {
    match error {
        Error::Refused(_) | Error::Closed { .. } => {
            Error::UpdateNotFound { workflow_id: run.workflow_id.clone(), update_id: id.clone() }
        }
        other => other,
    }
}

/// Returns an error if the run cannot take the update now. It is not lost: a run that goes on takes it.
async fn waits(rpc: &Rpc, run: &RunRef) -> Result<()> {
    match stuck_of(rpc, run).await? {
        Some(stuck) => Err(Error::UpdateWaits(stuck.reason)),
        None => Ok(()),
    }
}

fn stage_of(wait: UpdateWait) -> Stage {
    match wait {
        UpdateWait::Accepted => Stage::Accepted,
        UpdateWait::Completed => Stage::Completed,
    }
}

/// None if the update is not as far as its sender waits for.
fn state_of(outcome: Option<update::Outcome>, stage: i32, wanted: Stage) -> Result<Option<UpdateState>> {
    use update::outcome::Value;
    match outcome.and_then(|outcome| outcome.value) {
        Some(Value::Success(result)) => Ok(Some(UpdateState::Completed(Ok(first_from_proto(Some(result)))))),
        Some(Value::Failure(failure)) => {
            let rejected = is_rejection(&failure);
            let failure = failure_from_proto(failure);
            match rejected {
                true => Err(Error::UpdateRejected(Box::new(failure))),
                false => Ok(Some(UpdateState::Completed(Err(failure)))),
            }
        }
        None if wanted == Stage::Accepted && stage >= Stage::Accepted as i32 => Ok(Some(UpdateState::Accepted)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::common::WorkflowExecution;

    #[test]
    fn update_is_waited_for_in_the_run_that_has_taken_it() {
        let latest = RunRef::latest("order");
        let taken = WorkflowExecution { workflow_id: "order".into(), run_id: "first".into() };
        let update = update::UpdateRef { workflow_execution: Some(taken), update_id: "7".into() };
        assert_eq!(taken_by(latest.clone(), Some(update)), RunRef::exact("order", "first"));
        assert_eq!(taken_by(latest.clone(), None), latest);
    }

    #[test]
    fn only_an_update_that_is_missing_is_not_found() {
        let (run, id) = (RunRef::latest("order"), Name::from("7"));
        let missing = update_not_found(Error::Refused("no such update".into()), &run, &id);
        assert!(matches!(missing, Error::UpdateNotFound { .. }), "{missing}");
        let busy = update_not_found(Error::Busy("too fast".into()), &run, &id);
        assert!(matches!(busy, Error::Busy(_)), "{busy}");
    }
}
