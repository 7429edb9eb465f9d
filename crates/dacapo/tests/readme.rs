//! The report in the README is the one that its program gives.

use std::sync::Arc;

use dacapo::prelude::*;
use dacapo::{ClientError, Error};
use dacapo_store::{MemoryStore, Store};

const CANCEL: Signal<String> = Signal::new("cancel");

#[activity]
async fn charge(order: String) -> Result<String, Failure> {
    Ok(format!("receipt for {order}"))
}

/// Two deploys of the README's workflow that differ in how long it waits.
macro_rules! deploy {
    ($deploy:ident, $days:literal) => {
        mod $deploy {
            use super::*;

            #[workflow]
            pub(super) async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> {
                let receipt = ctx.call(charge, order).await?;
                ctx.race(ctx.next_signal(CANCEL), ctx.sleep(days($days))).await?;
                Ok(receipt)
            }
        }
    };
}
deploy!(first, 14);
deploy!(second, 21);

/// A text without the places in sources.
fn without_places(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n']).map(|word| match word.find(".rs:") {
        Some(_) => format!("FILE{}", &word[word.trim_end_matches([',', ' ', '\n']).len()..]),
        None => word.to_owned(),
    });
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn report_in_the_readme_is_what_a_forgotten_patch_gives() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let app = Dacapo::over_store(store.clone()).build("1.4.0").serve((first::checkout, charge)).await.unwrap();
    let run = app.start(first::checkout, "two lamps".into()).id("order-42").await.unwrap();
    while run.describe().await.unwrap().turns < 2 {
        tokio::task::yield_now().await;
    }
    app.shutdown().await;
    let app = Dacapo::over_store(store.clone()).build("1.5.0").serve((second::checkout, charge)).await.unwrap();
    let run = app.handle(second::checkout, "order-42");
    run.signal(CANCEL, "too bright".into()).await.unwrap();
    let Err(Error::Client(ClientError::Stuck(report))) = run.result_or_stuck().await else { panic!("it is stuck") };
    app.shutdown().await;

    // The corrected deploy: what the process before it found does not hold any more.
    let app = Dacapo::over_store(store).build("1.6.0").serve((first::checkout, charge)).await.unwrap();
    assert_eq!(app.handle(first::checkout, "order-42").result_or_stuck().await, Ok("receipt for two lamps".to_owned()));
    app.shutdown().await;

    let readme = include_str!("../../../README.md");
    let (_, shown) = readme.split_once("```text\nnondeterminism").expect("the README shows a report");
    let (shown, _) = shown.split_once("\n```").expect("it ends");
    let report = report.split_once("nondeterminism").map_or(report.as_str(), |(_, report)| report);
    assert_eq!(without_places(report.trim_end()), without_places(shown));
}
