//! Two requests: one that is decided, and one that is not. Days are shortened to moments here.

use anyhow::Result;
use dacapo::prelude::*;
use dacapo_examples::approval::{DECIDE, Decision, Request, WAITS_FOR, approval, send_email};

#[tokio::main]
async fn main() -> Result<()> {
    let app = Dacapo::open(&dacapo_examples::url_or("memory:")).await?.serve((approval, send_email)).await?;
    let request =
        |what: &str, patience| Request { what: what.into(), manager: "mona".into(), director: "dora".into(), patience };

    println!("a request that mona decides");
    let run = app.start(approval, request("a new chair", days(1))).await?;
    println!("  waits for {}", run.query(WAITS_FOR, ()).await?);
    let yes = Decision { by: "mona".into(), approved: true };
    println!("  {}", run.update(DECIDE, yes.clone()).await?);
    println!("  {:?}", run.result().await?);
    if let Err(error) = run.update(DECIDE, yes).await {
        println!("  too late: {error}");
    }

    println!("a request without a decision");
    let run = app.start(approval, request("a sauna", millis(300))).await?;
    println!("  {:?}", run.result().await?);
    app.shutdown().await;
    Ok(())
}
