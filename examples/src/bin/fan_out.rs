//! Counts three hundred parts, twenty at a time.

use std::time::Instant;

use anyhow::Result;
use dacapo::prelude::*;
use dacapo_examples::fan_out::{Work, count, count_all};

#[tokio::main]
async fn main() -> Result<()> {
    let app = Dacapo::open(&dacapo_examples::url_or("memory:")).await?.serve((count_all, count)).await?;
    let work = Work { parts: 300, at_once: 20 };
    println!("counting {} parts, {} at a time", work.parts, work.at_once);
    let begun = Instant::now();
    let run = app.start(count_all, work).await?;
    let sum = run.result().await?;
    println!("they hold {sum}; that took {} turns and {:.1?}", run.describe().await?.turns, begun.elapsed());
    app.shutdown().await;
    Ok(())
}
