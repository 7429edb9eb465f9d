//! Dacapo's worker.

use ::dacapo::prelude::*;
use anyhow::Result;
use futures::future::try_join_all;

use crate::arguments::Arguments;
use crate::serve_until_input_ends;
use crate::work::Work;

/// The limits with which Temporal's SDK comes: runs in memory, and workflow tasks and activities at a time.
const CACHED_RUNS: usize = 1_000;
const AT_A_TIME: usize = 100;

/// The timeout of each activity, as in the other worker.
const START_TO_CLOSE: std::time::Duration = secs(60);

#[activity]
async fn echo(payload: String) -> Result<String, Failure> {
    Ok(payload)
}

#[workflow]
async fn chain(ctx: Ctx, work: Work) -> Result<String, Failure> {
    let mut last = String::new();
    for _ in 0..work.activities {
        last = ctx.call(echo, work.payload.clone()).start_to_close(START_TO_CLOSE).await?;
    }
    Ok(last)
}

#[workflow]
async fn fan(ctx: Ctx, work: Work) -> Result<String, Failure> {
    let call = |_| ctx.call(echo, work.payload.clone()).start_to_close(START_TO_CLOSE);
    let all = try_join_all((0..work.activities).map(call)).await?;
    Ok(all.last().cloned().unwrap_or_default())
}

pub async fn serve(arguments: &Arguments) -> Result<()> {
    let (address, namespace) = (arguments.get("--address")?, arguments.get("--namespace")?);
    let url = format!("temporal://{address}/{namespace}?queue={}", arguments.get("--queue")?);
    let app = Dacapo::open(&url)
        .await?
        .settings(|app| {
            app.cache_size(CACHED_RUNS)
                .every_queue(|queue| queue.max_concurrent_workflows(AT_A_TIME).max_concurrent_activities(AT_A_TIME))
        })
        .serve((chain, fan, echo))
        .await?;
    serve_until_input_ends().await?;
    app.shutdown().await;
    Ok(())
}
