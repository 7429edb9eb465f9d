//! Resolving promises, by the update of a reserved name. It needs a live worker, and counts among the updates that the server allows.

use dacapo_client::{Error, ResolvePromise, Result, RunRef, SendUpdate, UpdateState, UpdateWait};
use dacapo_core::{Failure, Payload};
use uuid::Uuid;

use super::rpc::Rpc;
use super::update::send_update;
use crate::player::promises::{NOT_FOUND, RESOLVED, Resolve};
use crate::reserved::RESOLVE_PROMISE;

pub(super) async fn resolve(rpc: &Rpc, run: &RunRef, resolution: ResolvePromise) -> Result<()> {
    let ResolvePromise { promise, result } = resolution;
    let resolve = Resolve { promise: promise.clone(), result };
    let text = serde_json::to_string(&resolve)
        .map_err(|error| Error::InvalidArgument(format!("the resolution cannot be encoded: {error}")))?;
    let update = SendUpdate {
        id: Uuid::now_v7().to_string().into(),
        name: RESOLVE_PROMISE.into(),
        input: vec![Payload::json(text)],
        wait: UpdateWait::Completed,
        ..SendUpdate::default()
    };
    let refused = match send_update(rpc, run, update).await {
        Ok(UpdateState::Accepted | UpdateState::Completed(Ok(_))) => return Ok(()),
        Ok(UpdateState::Completed(Err(failure))) => failure,
        Err(Error::UpdateRejected(failure)) => *failure,
        Err(other) => return Err(other),
    };
    Err(refusal(refused, run, promise))
}

fn refusal(failure: Failure, run: &RunRef, promise: dacapo_core::Name) -> Error {
    match failure.type_name.as_ref().map(|name| name.as_str()) {
        Some(RESOLVED) => Error::AlreadyResolved(promise),
        Some(NOT_FOUND) => {
            Error::PromiseNotFound { workflow_id: run.workflow_id.clone(), promise, open: failure.message }
        }
        _ => Error::Refused(format!("promise {promise:?} cannot be resolved: {failure}")),
    }
}
