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

/// Counts all parts and adds up what they hold.
///
/// Some workers, units of this run, take the next part from a list they share. They run one at a time, in a stable order, so the list
/// needs no lock, and replay hands out the parts exactly as before.
#[workflow]
pub async fn count_all(ctx: Ctx, work: Work) -> Result<u64, Failure> {
    let parts = ctx.cell(0..work.parts);
    let workers = (0..work.at_once).map(|_| {
        let (ctx, parts) = (ctx.clone(), parts.clone());
        async move {
            let mut sum = 0;
            while let Some(part) = parts.update(Iterator::next) {
                sum += ctx.call(count, part).retry(patient()).await?;
            }
            Ok::<u64, Failure>(sum)
        }
    });
    ctx.parallel(workers).await.into_iter().sum()
}

/// Counts a part. Some parts need a second try, as in life.
#[activity]
pub async fn count(ctx: ActivityCtx, part: u64) -> Result<u64, Failure> {
    if part % 7 == 3 && ctx.info().attempt == 1 {
        return Err("the disk was busy".into());
    }
    tokio::time::sleep(millis(5)).await;
    Ok(part)
}

fn patient() -> Retry {
    Retry { initial: millis(50), ..Retry::exponential() }
}
