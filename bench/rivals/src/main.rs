//! The workloads of the bench on other crates for durable execution: `rivals durare|duroxide [--quick] [--only w1,…] [--url DATABASE]`.
//!
//! Each is set up as its documents advise for speed, and made to flush if it can be. The lines say how often it did.

mod durare;
mod duroxide;

use anyhow::{Result, bail};
use dacapo_bench_meter::{RivalArguments, measure};

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let rival = words.next().unwrap_or_default();
    let arguments = RivalArguments::parse(words)?;
    match rival.as_str() {
        "durare" => measure::<durare::Durare>(&arguments).await,
        "duroxide" => measure::<duroxide::Duroxide>(&arguments).await,
        other => bail!("`{other}` is no rival: durare or duroxide"),
    }
}
