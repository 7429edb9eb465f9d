//! W1 and W2: many workflows at once, in turns with the prototype.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use dacapo_bench_meter::{Rounds, Shape, Size};

use crate::embedded::{Embedded, file_url};
use crate::kept;
use crate::prototype::{Prototype, Waves};

/// W1.
pub(crate) async fn chains(size: &Size, folder: &Path) -> Result<()> {
    let (workflows, steps) = size.chains;
    run(size, folder, "w1", Shape::Chain(steps), Waves { workflows, steps, rows: 2 }).await
}

/// W2.
pub(crate) async fn fans(size: &Size, folder: &Path) -> Result<()> {
    let (workflows, steps) = size.fans;
    run(size, folder, "w2", Shape::Fan(steps), Waves { workflows, steps, rows: 2 }).await
}

async fn run(size: &Size, folder: &Path, workload: &'static str, shape: Shape, waves: Waves) -> Result<()> {
    let (url, bare) = (file_url(&folder.join("dacapo.db")), folder.join("prototype.db"));
    let embedded = Arc::new(Embedded::open(&url).await?);
    let mut rounds = Rounds::new(embedded.clone(), workload, shape, waves.workflows);
    let mut prototype = Prototype::open(&bare, workload, waves)?;
    loop {
        rounds.play().await?;
        // It is faster, and gets as much time as Dacapo.
        while prototype.time() < rounds.time() {
            prototype.play()?;
        }
        if rounds.time() >= size.time {
            break;
        }
    }
    embedded.close().await;
    kept::completed(&url, rounds.workflows()).await?;
    rounds.line().print();
    prototype.close(&bare, "steps")?.print();
    Ok(())
}
