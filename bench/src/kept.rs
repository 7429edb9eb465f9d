//! What is in a store when it is opened again: figures of work that was not kept would say nothing.

use anyhow::{Context, Result, ensure};
use dacapo::{Dacapo, Filter, Status};
use dacapo_bench_meter::payload;

use crate::embedded::with_setting;

/// Checks that a store holds so many completed runs and no other, each with the payload of the number its id ends with.
pub(crate) async fn completed(url: &str, runs: u64) -> Result<()> {
    let looked = look(url).await?;
    let completed = Filter::all().status(Status::Completed);
    let (all, done) = (looked.runs().count(&Filter::all()).await?, looked.runs().count(&completed).await?);
    ensure!((all, done) == (runs, runs), "{runs} runs were completed, and the store has {done} of {all}");
    let mut page = looked.runs().list(&completed, PAGE).await?;
    loop {
        for run in &page.runs {
            let number = run.workflow_id.rsplit('-').next().unwrap_or_default();
            let sent = payload(number.parse().with_context(|| format!("{} ends with no number", run.workflow_id))?);
            let result = run.result.as_ref().with_context(|| format!("{} has no result", run.workflow_id))?;
            let result = result.as_ref().map_err(|failure| anyhow::anyhow!("{failure}"))?;
            let result: String = dacapo::decode(result)?;
            ensure!(result == sent, "{} came to {result:?} instead of {sent:?}", run.workflow_id);
        }
        let Some(next) = page.next else { return Ok(()) };
        page = looked.runs().list_from(&completed, next, PAGE).await?;
    }
}

/// Checks that a store holds so many open runs.
pub(crate) async fn open(url: &str, runs: u64) -> Result<()> {
    let open = look(url).await?.runs().count(&Filter::open()).await?;
    ensure!(open == runs, "{runs} runs were started, and the store has {open}");
    Ok(())
}

/// Checks that a store holds the whole history of each of its runs.
pub(crate) async fn whole(url: &str) -> Result<()> {
    let problems = look(url).await?.runs().verify(|_| {}).await?;
    ensure!(problems.is_empty(), "{problems:?}");
    Ok(())
}

const PAGE: usize = 1_000;

async fn look(url: &str) -> Result<Dacapo> {
    Ok(Dacapo::open(&with_setting(url, "mode=ro")).await?)
}
