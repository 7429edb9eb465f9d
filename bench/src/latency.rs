//! W4: from start to result, in turns with bare commits.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use dacapo_bench_meter::{Rounds, Size, Turnaround};

use crate::bare_commit::BareCommit;
use crate::embedded::{Embedded, file_url};
use crate::kept;

pub(crate) async fn run(size: &Size, folder: &Path) -> Result<()> {
    let url = file_url(&folder.join("dacapo.db"));
    let embedded = Arc::new(Embedded::open(&url).await?);
    Rounds::warm_up(embedded.clone(), size.warm_up).await?;
    let mut bare = BareCommit::open(folder).await?;
    let mut turnaround = Turnaround::default();
    for _ in 0..size.turnarounds {
        turnaround.run(&*embedded).await?;
        bare.commit(2)?;
    }
    embedded.close().await;
    kept::completed(&url, u64::from(size.warm_up) + u64::from(size.turnarounds)).await?;
    turnaround
        .line("dacapo")
        .figure("bare_commits", turnaround.p50() / bare.p50())
        .figure("quiet_ms", turnaround.quiet())
        .figure("quiet_bare_commits", turnaround.quiet() / bare.quiet())
        .print();
    bare.lines("w4")?.iter().for_each(|line| line.print());
    Ok(())
}
