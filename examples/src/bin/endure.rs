//! `endure FILE ACKS ACCOUNT LIFE`: mixed work without end, on a file whose closed runs are kept for three seconds, with hardly
//! any run in memory. `endure FILE ACKS ACCOUNT drain`: ends all that is open, waits until the file is empty, and looks at it.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use dacapo::Filter;
use dacapo::prelude::*;
use dacapo_examples::endure::{KINDS, expected, release, serve, start};

/// How many pieces of work are open at a time.
const AT_A_TIME: u64 = 40;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, acks, account, life] = &args[..] else { anyhow::bail!("endure FILE ACKS ACCOUNT LIFE|drain") };
    let store = Dacapo::open(&format!("sqlite:{file}")).await?.settings(|app| app.cache_size(10).retention(secs(3)));
    let app = serve(store).await?;
    // The test kills this process, so the runs that were quarantined because of it are released.
    for run in app.runs().list(&Filter::stuck(), 10_000).await?.runs {
        let _ = app.handle_raw(run.workflow_id).release().await;
    }
    // The process that should have sent a signal may have been killed before.
    let mut page = app.runs().list(&Filter::open().workflow("waits"), 10_000).await?;
    for run in page.runs.drain(..) {
        release(&app, &run.workflow_id).await?;
    }
    if life == "drain" {
        return drain(&app).await;
    }
    let next = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..AT_A_TIME)
        .map(|_| {
            let (app, acks, account, life, next) =
                (app.clone(), acks.clone(), account.clone(), life.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let kind = KINDS[number as usize % KINDS.len()];
                    work(&app, kind, format!("{kind}-{life}-{number}"), number, &acks, &account).await?;
                }
            })
        })
        .collect();
    for worker in workers {
        let ended: Result<()> = worker.await?;
        ended?;
    }
    Ok(())
}

/// One piece of work. What was acknowledged is noted before anything else is done.
async fn work(app: &App, kind: &str, id: String, number: u64, acks: &str, account: &str) -> Result<()> {
    let run = start(app, kind, (id.clone(), account.to_owned(), number)).await?;
    let mut file = OpenOptions::new().create(true).append(true).open(acks)?;
    file.write_all(format!("{id} {}\n", expected(kind, number)).as_bytes())?;
    if kind == "waits" {
        release(app, &id).await?;
    }
    let result = run.result().await?;
    ensure!(result == expected(kind, number), "{id} came to {result}");
    Ok(())
}

async fn drain(app: &App) -> Result<()> {
    while app.runs().count(&Filter::all()).await? > 0 {
        tokio::time::sleep(millis(50)).await;
    }
    let problems = app.runs().verify(|_| {}).await?;
    ensure!(problems.is_empty(), "{problems:?}");
    println!("drained");
    app.clone().shutdown().await;
    Ok(())
}
