//! `dacapo demo`: a small shop on a file, to be killed and run again.

mod bank;
mod shop;

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dacapo::prelude::*;
use dacapo_client::{Client, IdConflict, StartRun};
use dacapo_core::{AttributeValue, Payload};
use serde::Serialize;

use self::bank::Bank;
use self::shop::{Order, Shop, checkout};
use crate::failure::{Failure, Result};
use crate::output::{Colour, Output};
use crate::text::columns;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The folder of its files, which is made if it is not there
    #[arg(default_value = "dacapo-demo")]
    folder: PathBuf,
    /// How many orders
    #[arg(long, short = 'n', default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=5000))]
    orders: u16,
}

/// The accounts in the end.
#[derive(Debug, Serialize)]
struct Report {
    orders: usize,
    accounts: Vec<(String, i64)>,
    /// Payments that were asked for a second time, after a crash or a failure, and were not made again.
    repeated: u64,
}

/// Starts the orders that are not started yet, and shows how all of them come to their end.
pub(crate) async fn demo(demo: Demo, output: Output) -> Result<()> {
    std::fs::create_dir_all(&demo.folder)?;
    let bank = Bank::open(&demo.folder.join("bank.jsonl"))?;
    let url = format!("sqlite:{}", demo.folder.join("shop.db").display());
    let app = Dacapo::open(&url).await?.serve((checkout, Shop { bank: bank.clone() })).await?;
    let client = app.client().clone();
    let mut waiting = Vec::new();
    let before = app.runs().count(&Filter::all()).await?;
    for number in 0..demo.orders {
        waiting.push(start(&*client, number).await?);
    }
    hint(output, &demo, &url, before);
    let total = waiting.len();
    for (done, id) in waiting.into_iter().enumerate() {
        progress(done, total, &id);
        app.handle(checkout, id).result().await?;
    }
    progress(total, total, "all");
    app.shutdown().await;
    let report = Report { orders: total, accounts: bank.balances()?, repeated: bank.repeated() };
    output.print(&report, || text(&report, output))
}

/// Every start has a key of its own, so that one that was made before a crash is made once.
async fn start(client: &dyn Client, number: u16) -> Result<String> {
    let order = Order::of(number);
    let id = format!("order-{number}");
    let start = StartRun {
        workflow: "checkout".into(),
        workflow_id: id.clone().into(),
        request_id: Some(format!("demo-{number}").into()),
        id_conflict: IdConflict::UseExisting,
        attributes: [("customer".into(), AttributeValue::Keyword(order.customer.clone().into()))].into(),
        input: vec![Payload::json(serde_json::to_string(&order).map_err(|error| Failure::Other(error.to_string()))?)],
        ..StartRun::default()
    };
    client.start(start).await?;
    Ok(id)
}

fn hint(output: Output, demo: &Demo, url: &str, before: u64) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let goes_on =
        if before > 0 { format!("{before} orders are on file: the shop goes on with them. ") } else { String::new() };
    let text = format!(
        "{goes_on}Kill me (kill -9 {}) and run me again. From another shell:\n  dacapo --url {url} list\n  dacapo --url {url} show order-0\n\
         To begin anew: rm -r {}\n",
        std::process::id(),
        demo.folder.display()
    );
    eprintln!("{}", output.coloured(Colour::Dim, &text));
}

fn progress(done: usize, total: usize, waits_for: &str) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let full = 30 * done / total.max(1);
    eprint!("\r[{}{}] {done} of {total} orders, {waits_for}      ", "█".repeat(full), " ".repeat(30 - full));
    if done == total {
        eprintln!();
    }
    std::io::stderr().flush().ok();
}

fn text(report: &Report, output: Output) -> String {
    let mut text = output.coloured(Colour::Dim, &columns(&[("ACCOUNT", 10)], "   BALANCE")) + "\n";
    for (account, cents) in &report.accounts {
        let sign = if *cents < 0 { "-" } else { "" };
        let amount = format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100);
        text += &(columns(&[(account, 10)], &format!("{amount:>10}")) + "\n");
    }
    text += &format!("{} orders; {} payments were tried again and made once", report.orders, report.repeated);
    text
}

/// The pauses of the shop.
const PAUSE: Duration = Duration::from_millis(150);
