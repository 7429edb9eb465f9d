//! Not to learn from: `hazard FILE WAY`, a run that kills its process in one way or another, among healthy ones. Started again
//! and again it stays up in the end, for the run or its activity is quarantined. With `HAZARD_CORRECTED` set its code does no harm:
//! the run is released, and ends.

use dacapo::Query;
use dacapo::prelude::*;
use dacapo::{ClientError, Error};
use dacapo_examples::url_or;

/// How many healthy runs there are.
const HEALTHY: u64 = 5;

const HOW: Query<(), String> = Query::new("how");
const END: Signal<()> = Signal::new("end");

/// The code that kills its process.
fn harm() -> Result<String, Failure> {
    if is_fixed() { Ok("no harm done".to_owned()) } else { std::process::abort() }
}

/// Kills its process by overflowing the stack.
fn deep(n: u64) -> Result<String, Failure> {
    if is_fixed() {
        return harm();
    }
    let words = deep(std::hint::black_box(n + 1))?;
    Ok(std::hint::black_box(words) + ".")
}

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    // Long enough to be running when the process dies.
    tokio::time::sleep(millis(30)).await;
    Ok(2 * n)
}

#[activity]
async fn explode() -> Result<String, Failure> {
    harm()
}

#[workflow]
async fn healthy(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let n = ctx.call(double, n).await?;
    ctx.call_local(double, n).await
}

#[workflow]
async fn deadly(ctx: Ctx, way: String) -> Result<String, Failure> {
    ctx.on_query(HOW, |()| harm());
    match way.as_str() {
        "activity" => ctx.call(explode, ()).await,
        "local-activity" => ctx.call_local(explode, ()).await,
        "closure" => ctx.side_effect("explode", || async { harm() }).await,
        "first-turn" => harm(),
        "turn" => {
            ctx.call(double, 1).await?;
            harm()
        }
        "overflow" => {
            ctx.call(double, 1).await?;
            deep(0)
        }
        "query" => {
            ctx.next_signal(END).await?;
            Ok("no harm done".to_owned())
        }
        // Its turns are committed all the while.
        "busy-query" => loop {
            if let First(_) = ctx.race(ctx.next_signal(END), ctx.sleep(millis(5))).await? {
                return Ok("no harm done".to_owned());
            }
        },
        other => Err(Failure::application(format!("unknown way to do harm: {other:?}"))),
    }
}

fn is_fixed() -> bool {
    std::env::var_os("HAZARD_CORRECTED").is_some()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let way = std::env::args().nth(2).unwrap_or_else(|| "activity".to_owned());
    let app = Dacapo::open(&url_or("sqlite:hazard.db")).await?.serve((healthy, deadly, double, explode)).await?;
    let mut runs = Vec::new();
    for n in 0..HEALTHY {
        let id = format!("healthy-{n}");
        runs.push(app.start(healthy, n).id(id.clone()).request_id(id).await?);
    }
    let killer = app.start(deadly, way.clone()).id("deadly").request_id("deadly").await?;
    if is_fixed() {
        killer.release().await?;
    }
    for (n, run) in (0..).zip(&runs) {
        anyhow::ensure!(run.result().await? == 4 * n);
    }
    println!("all that is healthy is done");
    let asks = way.ends_with("query");
    match is_fixed() {
        true => {
            if asks {
                println!("{}", killer.query(HOW, ()).await?);
                killer.signal(END, ()).await?;
            }
            println!("{}", killer.result().await?);
        }
        false => {
            if asks && let Err(Error::Client(ClientError::Stuck(words))) = killer.query(HOW, ()).await {
                println!("it is not asked: {words}");
            }
            println!("{}", stuck(&killer).await?);
            let listed = app.runs().list(&Filter::stuck(), 10).await?.runs;
            println!("stuck: {:?}", listed.iter().map(|run| run.workflow_id.as_str()).collect::<Vec<_>>());
            println!(
                "{}",
                killer.describe().await?.pending.iter().map(|activity| activity.state.to_string()).collect::<String>()
            );
        }
    }
    app.shutdown().await;
    Ok(())
}

/// Why the run does not go on, once it does not.
async fn stuck(run: &Handle<String>) -> anyhow::Result<String> {
    loop {
        if let Some(stuck) = run.describe().await?.stuck {
            return Ok(stuck.reason);
        }
        tokio::time::sleep(millis(10)).await;
    }
}
