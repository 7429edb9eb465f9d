//! Reports that leave payloads out.

use std::sync::Arc;

use dacapo::prelude::*;
use dacapo::{Query, Register};
use dacapo_store::{MemoryStore, Store};

const SECRET: &str = "4711-0815";
const STATE: Query<(), String> = Query::new("state");

#[activity]
async fn charge(_card: String) -> Result<(), Failure> {
    Ok(())
}

mod old {
    use super::*;

    #[workflow(name = "pays")]
    pub(super) async fn pays(ctx: Ctx, card: String) -> Result<(), Failure> {
        ctx.call(charge, card).await?;
        ctx.sleep(days(1)).await?;
        Ok(())
    }
}

mod new {
    use super::*;

    #[workflow(name = "pays")]
    pub(super) async fn pays(ctx: Ctx, card: String) -> Result<(), Failure> {
        ctx.on_query(STATE, |()| Ok(String::new()));
        ctx.call(charge, format!("card {card}")).await?;
        ctx.sleep(days(1)).await?;
        Ok(())
    }
}

mod reader {
    use super::*;

    #[workflow(name = "pays")]
    pub(super) async fn pays(ctx: Ctx, card: u64) -> Result<(), Failure> {
        ctx.sleep(millis(card)).await?;
        Ok(())
    }
}

/// Serves a changed workflow over a run that the old one began, and returns what its handle reports.
async fn report<P>(redact: bool, changed: impl Register<P>) -> String {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let app = Dacapo::over_store(store.clone()).serve((old::pays, charge)).await.unwrap();
    app.start(old::pays, SECRET.into()).id("a").await.unwrap();
    app.shutdown().await;
    let app = Dacapo::over_store(store).redact(redact).serve((changed, charge)).await.unwrap();
    let error = app.handle_raw("a").query(STATE, ()).await.unwrap_err().to_string();
    app.shutdown().await;
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn report_of_nondeterminism_shows_sizes_instead_of_payloads() {
    let whole = report(false, new::pays).await;
    assert!(whole.contains("nondeterminism") && whole.contains(SECRET), "{whole}");
    let redacted = report(true, new::pays).await;
    assert!(redacted.contains("nondeterminism") && redacted.contains("input: recorded ("), "{redacted}");
    assert!(!redacted.contains(SECRET), "{redacted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_of_a_value_that_does_not_decode_shows_its_size_alone() {
    let whole = report(false, reader::pays).await;
    assert!(whole.contains(SECRET), "{whole}");
    let redacted = report(true, reader::pays).await;
    assert!(redacted.contains("u64`: it has 11 bytes and is not shown"), "{redacted}");
    assert!(!redacted.contains(SECRET), "{redacted}");
}

#[workflow]
async fn reads_text_as_a_number(ctx: Ctx, card: String) -> Result<(), Failure> {
    ctx.on_query(STATE, |()| Ok(String::new()));
    ctx.set_attr(Attr::<String>::new("card"), card);
    ctx.attr(Attr::<u64>::new("card"));
    Ok(())
}

#[workflow]
async fn sets_a_long_keyword(ctx: Ctx, card: String) -> Result<(), Failure> {
    ctx.on_query(STATE, |()| Ok(String::new()));
    ctx.set_attr(Attr::<String>::new("card"), card.repeat(100));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn report_of_a_search_attribute_shows_its_value_only_where_nothing_is_redacted() {
    for redact in [false, true] {
        let store = Dacapo::open("memory:").await.unwrap().redact(redact);
        let app = store.serve((reads_text_as_a_number, sets_a_long_keyword)).await.unwrap();
        let starts = [app.start(reads_text_as_a_number, SECRET.into()), app.start(sets_a_long_keyword, SECRET.into())];
        for (start, shows) in starts.into_iter().zip([!redact, false]) {
            let report = start.await.unwrap().query(STATE, ()).await.unwrap_err().to_string();
            assert!(report.contains("search attribute \"card\""), "{report}");
            assert_eq!(report.contains(SECRET), shows, "{report}");
        }
        app.shutdown().await;
    }
}

#[workflow]
async fn returns_much(ctx: Ctx) -> Result<String, Failure> {
    ctx.on_query(STATE, |()| Ok(String::new()));
    Ok(SECRET.repeat(20))
}

#[tokio::test(flavor = "multi_thread")]
async fn report_of_a_result_that_is_too_large_shows_none_of_it() {
    for redact in [false, true] {
        let store = Dacapo::open("memory:").await.unwrap().redact(redact).settings(|app| app.payload_limit(100));
        let app = store.serve(returns_much).await.unwrap();
        let run = app.start(returns_much, ()).await.unwrap();
        let error = run.result_or_stuck().await.unwrap_err().to_string();
        assert!(error.contains("at most 100 are allowed"), "{error}");
        assert_eq!(error.contains(SECRET), !redact, "{error}");
        app.shutdown().await;
    }
}
