//! A program that serves a file is called by others through the socket beside it.
#![cfg(all(feature = "control", feature = "sqlite"))]

use std::fs;

use dacapo::Feature;
use dacapo::prelude::*;

const PAID: Signal<i64> = Signal::new("paid");

/// Waits until it is paid.
#[workflow]
async fn order(ctx: Ctx, item: String) -> Result<String, Failure> {
    let paid = ctx.next_signal(PAID).await?;
    Ok(format!("{item} for {paid}"))
}

#[tokio::test]
async fn another_program_calls_the_one_that_serves_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db").to_str().unwrap().to_owned();
    let app = Dacapo::open(&format!("sqlite:{file}")).await.unwrap().serve(order).await.unwrap();
    let socket = format!("{file}-control");
    let other = Dacapo::connect(&format!("unix:{socket}")).await.unwrap();
    assert_eq!(other.capabilities().backend, "sqlite");
    assert!(other.capabilities().has(Feature::Writing));
    let run = other.start(order, "a lamp".to_owned()).id("order-1").await.unwrap();
    run.signal(PAID, 5).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "a lamp for 5");
    assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 1);
    app.shutdown().await;
    assert!(!fs::exists(&socket).unwrap());
    let gone = Dacapo::connect(&format!("unix:{socket}")).await.err().unwrap().to_string();
    assert!(gone.contains("cannot be reached") && gone.contains("is running"), "{gone}");
}

#[tokio::test]
async fn socket_that_cannot_be_made_stops_nothing_and_none_is_made_where_none_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db").to_str().unwrap().to_owned();
    let socket = format!("{file}-control");
    fs::create_dir(&socket).unwrap();
    let open = || async { Dacapo::open(&format!("sqlite:{file}")).await.unwrap() };
    let app = open().await.serve(order).await.unwrap();
    app.start(order, "a lamp".to_owned()).id("order-1").await.unwrap();
    app.stop().await;
    assert!(fs::metadata(&socket).unwrap().is_dir());
    fs::remove_dir(&socket).unwrap();
    let app = open().await.control_socket(false).serve(order).await.unwrap();
    assert!(!fs::exists(&socket).unwrap());
    app.stop().await;
}

#[tokio::test]
async fn program_that_is_called_cannot_be_served_from_here() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db").to_str().unwrap().to_owned();
    let app = Dacapo::open(&format!("sqlite:{file}")).await.unwrap().serve(order).await.unwrap();
    let url = format!("unix:{file}-control");
    let refused = Dacapo::open(&url).await.unwrap().serve(order).await.err().unwrap().to_string();
    assert!(refused.contains("open the store itself"), "{refused}");
    let refused = Dacapo::open(&url).await.unwrap().check_open_runs(order, |_| {}).await.err().unwrap().to_string();
    assert!(refused.contains("open the store itself"), "{refused}");
    for (url, why) in [("unix:", "the path is missing"), ("http://", "is no host")] {
        let refused = Dacapo::connect(url).await.err().unwrap().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    app.stop().await;
}
