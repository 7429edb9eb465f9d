//! One call: whether the caller may make it, and its answer.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use dacapo_client::{ClientCall, ClientReply};

use super::Control;
use super::guard::Caller;
use super::problem::Problem;
use crate::Role;

/// Makes a call if the caller's role allows it. Changes are written to the log, whether they succeed or not.
pub(super) async fn make(control: &Control, caller: &Caller, call: ClientCall) -> Result<ClientReply, Problem> {
    let (needed, verb) = (Role::of(&call), call.verb());
    if caller.role < needed {
        let detail = format!(
            "`{verb}` needs the role `{needed}`, and the caller, {}, may only {}: send a token of the role `{needed}`",
            caller.name, caller.role
        );
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    if needed == Role::Read {
        return Ok(call.send(&*control.client, Box::new(|_| {})).await?);
    }
    let run = call.run().map(ToString::to_string).unwrap_or_default();
    let answer = call.send(&*control.client, Box::new(|_| {})).await;
    match &answer {
        Ok(_) => tracing::info!(target: "dacapo::audit", verb, run, caller = caller.name, "a caller changed something"),
        Err(error) => {
            tracing::info!(target: "dacapo::audit", verb, run, caller = caller.name, %error, "a change was refused");
        }
    }
    Ok(answer?)
}

/// A call as it came, and its reply as it is: the form that [`RemoteClient`](crate::RemoteClient) uses.
pub(super) async fn as_data(
    control: Arc<Control>,
    caller: Caller,
    call: ClientCall,
) -> Result<Json<ClientReply>, Problem> {
    make(&control, &caller, call).await.map(Json)
}
