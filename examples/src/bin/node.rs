//! `node URL`: serves errands until it is killed.

use anyhow::{Context, Result};
use dacapo::prelude::*;
use dacapo_examples::errand::{QUEUE, errand, given, part, shaky, step};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).context("node URL")?;
    let store = Dacapo::open(&url).await?.queue(QUEUE);
    let app = store.serve((errand, part, step, shaky, given)).await?;
    println!("ready");
    app.serve_until_signalled().await?;
    Ok(())
}
