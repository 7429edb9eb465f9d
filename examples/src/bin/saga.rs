//! Two trips: one that works out, and one that has to be taken back.

use anyhow::Result;
use dacapo::prelude::*;
use dacapo_examples::saga::{Trip, book, give_back, trip};

#[tokio::main]
async fn main() -> Result<()> {
    let app = Dacapo::open(&dacapo_examples::url_or("memory:")).await?.serve((trip, book, give_back)).await?;
    for (traveller, city) in [("ada", "Praha"), ("grace", "Venezia")] {
        println!("{traveller} wants to go to {city}");
        let run = app.start(trip, Trip { traveller: traveller.into(), city: city.into() }).await?;
        match run.result().await {
            Ok(confirmed) => println!("  {}", confirmed.join(", ")),
            Err(error) => println!("  {error}"),
        }
    }
    app.shutdown().await;
    Ok(())
}
