//! Waiting for the end of a run.

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
        let End { status, result, next_run_id } = ended(rpc, &run).await?;
        match (next_run_id, result) {
            (Some(next), _) => run = RunRef::exact(run.workflow_id, next),
            (None, Some(result)) => return Ok(RunResult::new(status, result)),
            (None, None) => {
                return Err(Error::Damaged(format!(
                    "run {run} has continued as new, and the server does not say as which run"
                )));
            }
        }
    }
}

/// Waits as [`result`] does, and also until the run is stuck.
pub(super) async fn result_or_stuck(rpc: &Rpc, run: &RunRef) -> Result<RunResult> {
    let looking = async {
        loop {
            match stuck_of(rpc, run).await {
                Ok(Some(stuck)) => return Error::Stuck(stuck.reason),
                Err(error) if !is_outage(&error) => return error,
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    };
    tokio::select! {
        biased;
        ended = result(rpc, run) => ended,
        stuck = looking => Err(stuck),
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
