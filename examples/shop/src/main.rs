//! A web shop that survives crashes and deploys.
//!
//! ```text
//! cargo run -p dacapo-shop -- serve orders.db --port 8080
//!
//! curl -s localhost:8080/orders -H 'content-type: application/json' \
//!      -d '{"id":"o-1","sku":"violin","quantity":1,"cents":129900,"card":"visa"}'
//! curl -s localhost:8080/orders/o-1
//! curl -s localhost:8080/orders/o-1/confirm -H 'content-type: application/json' -d '{"by":"ada"}'
//! curl -s localhost:8080/orders/o-1/cancel  -H 'content-type: application/json' -d '{"reason":"too loud"}'
//! curl -s localhost:8080/orders/o-1/history
//! curl -s 'localhost:8080/orders?status=open&limit=10'
//! curl -s localhost:8080/stuck
//! ```
//!
//! Kill it at any moment and start it again: every order goes on. `--version v1|v2|v3|v4` serves another version of the
//! checkout; v3 is a bad deploy. While a server runs, or after it ended, `dacapo-shop stuck orders.db` says what is stuck.

use anyhow::{Context, Result, bail};
use dacapo::Dacapo;
use dacapo_shop::checkout::Version;
use dacapo_shop::shop::Shop;
use dacapo_shop::{service, stuck};

const USAGE: &str = "usage: dacapo-shop serve FILE [--port PORT] [--version v1|v2|v3|v4]
       dacapo-shop stuck FILE";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Wish::of(&arguments)? {
        Wish::Serve { file, port, version } => serve(&file, port, version).await,
        Wish::Stuck { file } => {
            let store = Dacapo::open(&format!("sqlite:{file}?mode=ro")).await?;
            print!("{}", stuck::report(&store.runs()).await?);
            Ok(())
        }
    }
}

enum Wish {
    Serve { file: String, port: u16, version: Version },
    Stuck { file: String },
}

impl Wish {
    fn of(arguments: &[String]) -> Result<Self> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["stuck", file] => Ok(Self::Stuck { file: (*file).to_owned() }),
            ["serve", file, options @ ..] => {
                let (mut port, mut version) = (0, Version::V4);
                for option in options.chunks(2) {
                    match option {
                        ["--port", given] => port = given.parse().with_context(|| format!("no port: {given:?}"))?,
                        ["--version", given] => version = given.parse().map_err(anyhow::Error::msg)?,
                        other => bail!("{} says nothing here\n{USAGE}", other.join(" ")),
                    }
                }
                Ok(Self::Serve { file: (*file).to_owned(), port, version })
            }
            _ => bail!("{USAGE}"),
        }
    }
}

async fn serve(file: &str, port: u16, version: Version) -> Result<()> {
    let shop = Shop::open(&format!("{file}-shop")).context("the shop's own database cannot be opened")?;
    for sku in ["violin", "viola", "cello"] {
        shop.stock(sku, 100)?;
    }
    let app = version.serve(Dacapo::open(&format!("sqlite:{file}")).await?, shop).await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("serving {version} of {file} on http://{}", listener.local_addr()?);
    let routes = service::routes(app.clone(), version);
    axum::serve(listener, routes).with_graceful_shutdown(interrupted()).await?;
    app.shutdown().await;
    println!("ended; every open order goes on with the next start");
    Ok(())
}

async fn interrupted() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        eprintln!("Ctrl-C cannot be handled: {error}");
        std::future::pending::<()>().await;
    }
}
