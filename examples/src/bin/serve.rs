//! Serves the programs of this package until a signal asks it to end: `serve <url>`.

use anyhow::Result;
use dacapo::prelude::*;
use dacapo_examples::{busy, counter, entity, fan_out, saga};

#[tokio::main]
async fn main() -> Result<()> {
    let app = Dacapo::open(&dacapo_examples::url_or("sqlite:examples.db"))
        .await?
        .serve((
            counter::counter,
            (busy::busy, busy::one),
            entity::Account::run,
            (fan_out::count_all, fan_out::count),
            (saga::trip, saga::book, saga::give_back),
        ))
        .await?;
    println!("serving");
    app.serve_until_signalled().await?;
    Ok(())
}
