//! `mill FILE LOG LIFE COUNT`: does so many pieces of work of all kinds. The test that kills it starts it again and again.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dacapo::prelude::*;
use dacapo_examples::mill::{KINDS, Log, at_home, expected, family, fan, fed, line, nap, stubborn, work};

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, log, life, count] = &args[..] else { anyhow::bail!("mill FILE LOG LIFE COUNT") };
    let log = Arc::new(Log::open(log, life.parse()?)?);
    let store = Dacapo::open(&format!("sqlite:{file}"))
        .await?
        .settings(|app| app.every_queue(|queue| queue.max_concurrent_activities(8)));
    let app = store.serve((line, fan, nap, stubborn, family, at_home, fed, log)).await?;
    // The test killed the process, so quarantined activities are released. Most runs have none, and answer with an error.
    for run in app.runs().list(&Filter::open(), 1_000).await?.runs {
        let _ = app.handle_raw(run.workflow_id).release().await;
    }
    println!("serving");
    std::io::stdout().flush()?;
    let pieces: Vec<_> = (0..count.parse()?)
        .map(|n: usize| (KINDS[n % KINDS.len()], n as u64))
        .map(|(kind, n)| (kind, n, tokio::spawn(work(app.clone(), kind, n))))
        .collect();
    for (kind, n, piece) in pieces {
        let result = piece.await?.with_context(|| format!("{kind}-{n}"))?;
        ensure!(result == expected(kind, n), "{kind}-{n} came to {result}");
    }
    println!("done");
    app.shutdown().await;
    Ok(())
}
