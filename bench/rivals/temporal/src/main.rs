//! The workloads of the bench on a Temporal server: a worker in one process, the caller of its workflows in another.
//!
//! ```text
//!   dacapo-bench-temporal serve dacapo|temporalio-sdk --address 127.0.0.1:7233 --namespace N --queue Q
//!   dacapo-bench-temporal drive w1|w2|w4 --address … --namespace N --queue Q --system S --worker PID --server PID [--quick]
//! ```
//!
//! A worker prints `serving` and ends with its standard input. The caller is the same program for both workers; it prints one line of JSON,
//! with the processor time that the worker and the server used meanwhile.

mod arguments;
mod dacapo;
mod drive;
mod sdk;
mod work;

use std::io::Read as _;

use anyhow::{Result, bail};

use arguments::Arguments;

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", "dacapo", ref rest @ ..] => dacapo::serve(&Arguments::parse(rest)?).await,
        ["serve", "temporalio-sdk", ref rest @ ..] => sdk::serve(&Arguments::parse(rest)?).await,
        ["drive", workload, ref rest @ ..] => drive::run(workload, &Arguments::parse(rest)?).await,
        _ => bail!(
            "unknown words `{}`: expected `serve dacapo`, `serve temporalio-sdk` or `drive WORKLOAD`",
            words.join(" ")
        ),
    }
}

/// Tells the parent that work is taken, and waits until the parent closes the standard input or ends.
async fn serve_until_input_ends() -> Result<()> {
    println!("serving");
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}
