//! A program that cannot be set up.

use dacapo::prelude::*;
use dacapo::{Dacapo, QueueSettings};
use tempfile::tempdir;

use crate::cause::Page;

#[workflow]
async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> {
    ctx.sleep(days(1)).await?;
    Ok(order)
}

/// A store that cannot be opened.
pub(crate) async fn store(page: &mut Page) {
    page.error("open a path without the kind of store", Dacapo::open("orders.db").await);
    page.error("open another kind of database", Dacapo::open("mysql:orders").await);
    page.error("open a store that is not part of this build", Dacapo::open("postgres://localhost/orders").await);
    page.error("open an SQLite store without a file", Dacapo::open("sqlite:").await);
    page.error("open SQLite's own name for memory", Dacapo::open("sqlite::memory:").await);
    page.error("open with an unknown setting in the URL", Dacapo::open("sqlite:orders.db?mode=rw").await);
    page.error("connect to a store in memory", Dacapo::connect("memory:").await);

    let folder = tempdir().unwrap();
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    page.error("open a file in a folder that does not exist", Dacapo::open(&url("missing/orders.db")).await);
    page.error("connect to a file that does not exist", Dacapo::connect(&url("missing.db")).await);

    std::fs::write(folder.path().join("letter.txt"), "Dear Ada, ".repeat(200)).unwrap();
    page.error("open a file of another program", Dacapo::open(&url("letter.txt")).await);
    let other = rusqlite::Connection::open(folder.path().join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE letters (text TEXT)").unwrap();
    page.error("open an SQLite database of another program", Dacapo::open(&url("other.db")).await);

    let app = Dacapo::open(&url("orders.db")).await.unwrap().serve(checkout).await.unwrap();
    page.error("serve a file that another process serves", Dacapo::open(&url("orders.db")).await);
    page.error("back up onto a file that exists", app.runs().back_up(folder.path().join("other.db")).await);
    app.shutdown().await;

    let read_only = Dacapo::open(&format!("{}?mode=ro", url("orders.db"))).await.unwrap();
    page.error("serve a file that is open for reading only", read_only.serve(checkout).await.map(drop));
    let connection = Dacapo::connect(&url("orders.db")).await.unwrap();
    page.error("start by a connection that only reads", connection.start(checkout, "lamp".into()).await);

    let newer = rusqlite::Connection::open(folder.path().join("orders.db")).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(newer);
    page.error("open a file of a newer build", Dacapo::open(&url("orders.db")).await);
}

/// Settings and registrations that contradict each other.
pub(crate) async fn setup(page: &mut Page) {
    let open = || async { Dacapo::open("memory:").await.unwrap().environment([("PATH", "")]) };
    page.error("serve one workflow twice", open().await.serve((checkout, checkout)).await.map(drop));
    let misspelt = open().await.settings(|app| app.set("cash_size", "10"));
    page.error("misspell a setting in code", misspelt.serve(checkout).await.map(drop));
    let variables = Dacapo::open("memory:").await.unwrap().environment([("DACAPO_CASH_SIZE", "10")]);
    page.error("misspell a setting in the environment", variables.serve(checkout).await.map(drop));
    let variables = Dacapo::open("memory:").await.unwrap().environment([("DACAPO_CACHE_SIZE", "many")]);
    page.error("give a word for a number", variables.serve(checkout).await.map(drop));
    let variables = Dacapo::open("memory:").await.unwrap().environment([("DACAPO_RETENTION", "90")]);
    page.error("give a time without its unit", variables.serve(checkout).await.map(drop));
    let excessive = open().await.settings(|app| app.turn_threads(1_000_000));
    page.error("set a number out of range", excessive.serve(checkout).await.map(drop));
    let contradiction = open().await.settings(|app| app.every_queue(|queue| queue.shutdown_grace_period(mins(5))));
    page.error("set two settings that contradict each other", contradiction.serve(checkout).await.map(drop));
    let twice = open().await.queue("slow").queue(QueueSettings::new("slow"));
    page.error("set up one queue twice", twice.serve(checkout).await.map(drop));
    page.error("serve a queue without a name", open().await.queue("").serve(checkout).await.map(drop));
}
