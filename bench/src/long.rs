//! W3: one long workflow, with bare commits between its steps.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use dacapo_bench_meter::{Long, Rounds, Size};

use crate::bare_commit::BareCommit;
use crate::embedded::{Embedded, file_url};
use crate::kept;

/// How often the steps are interrupted for bare commits.
const PAUSES: u32 = 20;

pub(crate) async fn run(size: &Size, folder: &Path) -> Result<()> {
    for steps in [size.steps.0, size.steps.1] {
        let folder = tempfile::tempdir_in(folder)?;
        of(steps, size, folder.path()).await?;
    }
    Ok(())
}

async fn of(steps: u32, size: &Size, folder: &Path) -> Result<()> {
    let url = file_url(&folder.join("dacapo.db"));
    let embedded = Arc::new(Embedded::open(&url).await?);
    Rounds::warm_up(embedded.clone(), size.warm_up).await?;
    let bare = Arc::new(Mutex::new((BareCommit::open(folder).await?, Ok(()))));
    let pausing = bare.clone();
    let pause = move || {
        let mut bare = pausing.lock().expect("a bare commit panicked");
        if bare.1.is_ok() {
            // A tenth as many commits as steps, in each of the two ways.
            bare.1 = bare.0.commit((steps / PAUSES / 10).max(1));
        }
    };
    let long = Long { steps, every: (steps / PAUSES) as usize };
    let took = long.run(&*embedded, &format!("w3-{steps}"), Box::new(pause)).await?;
    embedded.close().await;
    kept::completed(&url, u64::from(size.warm_up) + 1).await?;
    let mut bare = bare.lock().expect("a bare commit panicked");
    std::mem::replace(&mut bare.1, Ok(())).context("a bare commit failed")?;
    let took = took.without(bare.0.usage());
    took.line("dacapo")
        .figure("bare_commits", took.mean() / bare.0.mean())
        .figure("quiet_ms", took.quiet())
        .figure("quiet_bare_commits", took.quiet() / bare.0.quiet())
        .print();
    bare.0.lines(&format!("w3_{steps}"))?.iter().for_each(|line| line.print());
    Ok(())
}
