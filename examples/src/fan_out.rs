//! Fan-out: a large piece of work in many parts, a few at a time.

use dacapo::prelude::*;
use serde::{Deserialize, Serialize};

/// A text to be counted, in parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// How many parts it has.
    pub parts: u64,
    /// How many are counted at a time.
    pub at_once: usize,
}

/// Counts all parts and adds up the counts. Each part is a branch of its own; a branch begins when one before it has ended.
#[workflow]
pub async fn count_all(ctx: Ctx, work: Work) -> Result<u64, Failure> {
    let parts = (0..work.parts).map(|part| {
        let ctx = ctx.clone();
        async move { ctx.call(count, part).start_to_close(secs(2)).retry(patient()).await }
    });
    ctx.parallel(parts).at_most(work.at_once).await.into_iter().sum()
}

/// Counts a part. The first attempt fails for some parts.
#[activity]
pub async fn count(ctx: ActivityCtx, part: u64) -> Result<u64, Failure> {
    if part % 7 == 3 && ctx.info().attempt == 1 {
        return Err("the disk was busy".into());
    }
    tokio::time::sleep(millis(5)).await;
    Ok(part)
}

fn patient() -> Retry {
    Retry { first_pause: millis(50), ..Retry::exponential() }
}
