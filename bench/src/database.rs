//! The workloads on a PostgreSQL database, each in a schema of its own and with as much as rivals are given.
//!
//! What stands beside a file, the prototype and bare commits, has no meaning here: the figures are compared with those of rivals on the same
//! server.

use std::sync::Arc;

use anyhow::Result;
use dacapo_bench_meter::{Long, Rounds, Shape, Size, Turnaround, start_sleepers};

use crate::arguments::Workload;
use crate::embedded::{Embedded, new_schema_url};
use crate::{kept, replay, sleepers};

/// Runs a workload in a new schema of this database.
pub(crate) async fn run(workload: Workload, size: &Size, database: &str) -> Result<()> {
    let url = new_schema_url(database, workload.name());
    match workload {
        Workload::W1 => rounds("w1", Shape::Chain(size.chains.1), size.chains.0, size, &url).await,
        Workload::W2 => rounds("w2", Shape::Fan(size.fans.1), size.fans.0, size, &url).await,
        Workload::W3 => {
            long(size.steps.0, size, &url).await?;
            long(size.steps.1, size, &new_schema_url(database, workload.name())).await
        }
        Workload::W4 => turnaround(size, &url).await,
        Workload::W5 => replay::run(size, &url).await,
        Workload::W6 => many_sleepers(size, &url, &new_schema_url(database, "empty")).await,
    }
}

async fn rounds(name: &'static str, shape: Shape, wide: u32, size: &Size, url: &str) -> Result<()> {
    let embedded = Arc::new(Embedded::open(url).await?);
    let mut rounds = Rounds::new(embedded.clone(), name, shape, wide);
    rounds.play_for(size.time).await?;
    embedded.close().await;
    kept::completed(url, rounds.workflows()).await?;
    rounds.line().print();
    Ok(())
}

async fn long(steps: u32, size: &Size, url: &str) -> Result<()> {
    let embedded = Arc::new(Embedded::open(url).await?);
    Rounds::warm_up(embedded.clone(), size.rival_warm_up()).await?;
    let long = Long { steps, every: usize::MAX };
    let took = long.run(&*embedded, &format!("w3-{steps}"), Box::new(|| ())).await?;
    embedded.close().await;
    kept::completed(url, u64::from(size.rival_warm_up()) + 1).await?;
    took.line("dacapo").print();
    Ok(())
}

async fn turnaround(size: &Size, url: &str) -> Result<()> {
    let embedded = Arc::new(Embedded::open(url).await?);
    Rounds::warm_up(embedded.clone(), size.rival_warm_up()).await?;
    let mut turnaround = Turnaround::default();
    for _ in 0..size.turnarounds {
        turnaround.run(&*embedded).await?;
    }
    embedded.close().await;
    kept::completed(url, u64::from(size.rival_warm_up()) + u64::from(size.turnarounds)).await?;
    turnaround.line("dacapo").print();
    Ok(())
}

async fn many_sleepers(size: &Size, url: &str, empty: &str) -> Result<()> {
    let embedded = Arc::new(Embedded::open(url).await?);
    let line = start_sleepers(embedded.clone(), size.sleepers).await?;
    embedded.close().await;
    sleepers::with_fresh_process(line, size.sleepers, size.idle, url, empty).await?.print();
    Ok(())
}
