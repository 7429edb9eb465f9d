//! Not to learn from: an activity that kills its process, among healthy ones. Started again and again it stays up in the end,
//! for the activity is quarantined; with `mended` as its second argument it releases the activity, which does no harm then.

use dacapo::prelude::*;
use dacapo_examples::url_or;

/// How many runs do no harm.
const HEALTHY: u64 = 5;

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    // Long enough to be under way when the process dies.
    tokio::time::sleep(millis(30)).await;
    Ok(2 * n)
}

#[activity]
async fn explode() -> Result<String, Failure> {
    match is_mended() {
        true => Ok("no harm done".into()),
        false => std::process::abort(),
    }
}

#[workflow]
async fn healthy(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let n = ctx.call(double, n).await?;
    ctx.call(double, n).await
}

#[workflow]
async fn deadly(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(explode, ()).await
}

fn is_mended() -> bool {
    std::env::args().nth(2).is_some_and(|word| word == "mended")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let app = Dacapo::open(&url_or("sqlite:hazard.db")).await?.serve((healthy, deadly, double, explode)).await?;
    let mut runs = Vec::new();
    for n in 0..HEALTHY {
        let id = format!("healthy-{n}");
        runs.push(app.start(healthy, n).id(id.clone()).request(id).await?);
    }
    let killer = app.start(deadly, ()).id("deadly").request("deadly").await?;
    for (n, run) in (0..).zip(&runs) {
        anyhow::ensure!(run.result().await? == 4 * n);
    }
    println!("all that is healthy is done");
    if is_mended() {
        killer.release().await?;
        println!("{}", killer.result().await?);
    } else {
        let described = loop {
            let described = killer.describe().await?;
            if described.stuck.is_some() {
                break described;
            }
            tokio::time::sleep(millis(10)).await;
        };
        println!("{}", described.pending[0].state);
        println!("{}", described.stuck.map(|stuck| stuck.reason).unwrap_or_default());
    }
    app.shutdown().await;
    Ok(())
}
