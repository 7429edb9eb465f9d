//! Polling: waiting for a service that has no callbacks. A workflow asks, sleeps, and asks again. Each question is an activity,
//! so that it may fail and be tried again; and the run continues as new now and then, so that waiting for months leaves a
//! history of a few turns.

use dacapo::prelude::*;

/// How often a run asks before it continues as new.
pub const ASKED_BY_ONE_RUN: u32 = 20;

/// Asks the service whether a job is done.
#[activity]
pub async fn ask(_job: String) -> Result<Option<String>, Failure> {
    // A real one calls the service; an error here is tried again soon, by the retry policy.
    Ok(Some("done".into()))
}

/// Waits until a job is done, and returns its result.
#[workflow]
pub async fn wait_for_job(ctx: Ctx, job: String) -> Result<String, Failure> {
    for _ in 0..ASKED_BY_ONE_RUN {
        let answer = ctx.call(ask, job.clone()).start_to_close(secs(10)).retry(Retry::exponential().attempts(10));
        if let Some(result) = answer.await? {
            return Ok(result);
        }
        ctx.sleep(mins(1)).await?;
    }
    Err(ctx.continue_as_new(wait_for_job, job))
}
