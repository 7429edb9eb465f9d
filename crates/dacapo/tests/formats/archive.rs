//! Files of histories.

use std::io::Cursor;

use dacapo::prelude::*;
use dacapo::{Filter, Timestamp};
use dacapo_testkit::{WRITE_GOLDEN, assert_golden};

use crate::MANIFEST;

const HIT: Update<u64, u64> = Update::new("hit");
const GO: Signal<String> = Signal::new("go");

#[activity]
async fn step(number: u64) -> Result<u64, Failure> {
    if number == 0 { Err(Failure::application("nothing").non_retryable()) } else { Ok(number + 1) }
}

/// Answers updates until it is told to go on, and then continues as new once.
#[workflow]
async fn rich(ctx: Ctx, more: u64) -> Result<u64, Failure> {
    ctx.set_attr(Attr::new("size"), -7);
    ctx.set_attr(Attr::new("weight"), 2.5);
    ctx.set_attr(Attr::new("paid"), true);
    ctx.set_attr(Attr::new("due"), Timestamp::from_millis(5));
    ctx.set_attr(Attr::new("tags"), vec!["a".to_owned(), "b".to_owned()]);
    ctx.set_memo("note", &"kept");
    ctx.publish(&more);
    ctx.on_update(HIT, |_| Ok(()), |number| async move { Ok(2 * number) });
    if more > 0 {
        ctx.next_signal(GO).await?;
        return Err(ctx.continue_as_new(rich, more - 1));
    }
    ctx.call(step, 0).await
}

async fn serve() -> App {
    Dacapo::open("memory:").await.unwrap().build("1.0.0").serve((rich, step)).await.unwrap()
}

async fn exported(app: &App) -> String {
    let (_, file) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    String::from_utf8(file).unwrap()
}

/// Makes a file with a line of every kind: a chain that fails, and a run that was terminated.
async fn made() -> String {
    let app = serve().await;
    let run = app.start(rich, 1).id("chain").request_id("once").attr(Attr::new("city"), "Ulm").await.unwrap();
    run.update(HIT, 4).request_id("u").await.unwrap();
    run.signal(GO, "on".to_owned()).request_id("s").await.unwrap();
    run.result().await.unwrap_err();
    app.start(rich, 1).id("ended").await.unwrap().terminate("enough").await.unwrap();
    exported(&app).await
}

fn number(file: &str) -> u64 {
    let first: serde_json::Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    first["file"]["version"].as_u64().unwrap()
}

/// The golden file is read into an empty store, and what that store writes is the golden file.
#[tokio::test(flavor = "multi_thread")]
async fn file_of_histories_is_what_its_number_says() {
    let made = made().await;
    let number = number(&made);
    let path = format!("{MANIFEST}/tests/golden/archive-v{number}.jsonl");
    if std::env::var_os(WRITE_GOLDEN).is_some() && !std::path::Path::new(&path).exists() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let app = serve().await;
    let written = match kept.is_empty() {
        true => made,
        false => {
            let imported = app.import(Cursor::new(kept.into_bytes())).await.unwrap();
            assert_eq!((imported.runs, imported.known.len(), imported.open.len()), (3, 0, 0));
            exported(&app).await
        }
    };
    assert_golden(MANIFEST, "archive", number, "jsonl", &written);
    let chain = app.handle(rich, "chain").describe().await.unwrap();
    assert_eq!(chain.attributes["tags"].to_string(), "a, b");
    assert_eq!(chain.attributes["city"], "Ulm".into());
    assert_eq!(app.handle(rich, "chain").update(HIT, 4).request_id("u").await.unwrap(), 8, "it was answered before");
}
