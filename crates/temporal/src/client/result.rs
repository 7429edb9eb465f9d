//! Waiting for the end of a run.

use std::ops::ControlFlow;
use std::time::Duration;

use dacapo_client::{Error, Result, RunRef, RunResult};

use super::end::{End, close_of};
use super::refusals::is_outage;
use super::rpc::Rpc;
use super::stuck::stuck_of;

/// How often a run is described for callers who also wait for it to get stuck: the server sends no word of that.
const LOOK: Duration = Duration::from_secs(2);
/// The pause before the server is asked again after an outage.
const OUTAGE: Duration = Duration::from_secs(1);

/// Waits for the end of the last run of a chain. An outage of the server is waited out.
pub(super) async fn result(rpc: &Rpc, run: &RunRef) -> Result<RunResult> {
    let mut run = run.clone();
    loop {
        let end = ended(rpc, &run).await?;
        match next(run, end)? {
            ControlFlow::Break(result) => return Ok(result),
            ControlFlow::Continue(next) => run = next,
        }
    }
}

/// Waits as [`result`] does, and also until the run that the chain has come to is stuck.
pub(super) async fn result_or_stuck(rpc: &Rpc, run: &RunRef) -> Result<RunResult> {
    let mut run = run.clone();
    loop {
        let end = tokio::select! {
            biased;
            ended = ended(rpc, &run) => ended?,
            error = stuck(rpc, &run) => return Err(error),
        };
        match next(run, end)? {
            ControlFlow::Break(result) => return Ok(result),
            ControlFlow::Continue(next) => run = next,
        }
    }
}

/// Returns the result of a run that has ended, or the run that goes on for it.
fn next(run: RunRef, end: End) -> Result<ControlFlow<RunResult, RunRef>> {
    let End { status, result, next_run_id } = end;
    match (next_run_id, result) {
        (Some(next), _) => Ok(ControlFlow::Continue(RunRef::exact(run.workflow_id, next))),
        (None, Some(result)) => Ok(ControlFlow::Break(RunResult::new(status, result))),
        (None, None) => {
            Err(Error::Damaged(format!("run {run} has continued as new, and the server does not say as which run")))
        }
    }
}

/// Waits until a run is stuck, or cannot be asked.
async fn stuck(rpc: &Rpc, run: &RunRef) -> Error {
    loop {
        match stuck_of(rpc, run).await {
            Ok(Some(stuck)) => return Error::Stuck(stuck.reason),
            Err(error) if !is_outage(&error) => return error,
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

async fn ended(rpc: &Rpc, run: &RunRef) -> Result<End> {
    let mut warned = false;
    loop {
        match close_of(rpc, run, true).await {
            Err(error) if is_outage(&error) => {
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(target: "dacapo", workflow_id = %run.workflow_id, %error, "waiting goes on");
                }
                tokio::time::sleep(OUTAGE).await;
            }
            Ok(Some(end)) => return Ok(end),
            Ok(None) => {}
            Err(error) => return Err(error),
        }
    }
}
