//! Calls that are refused.

use std::io::Cursor;

use dacapo::prelude::*;
use dacapo::{Dacapo, Query};
use serde_json::json;
use tempfile::tempdir;

use crate::cause::Page;

const CANCEL: Signal<String> = Signal::new("cancel");
const TOTAL: Query<u64, u64> = Query::new("total");
const ADD: Update<u64, u64> = Update::new("add");
const CONSENT: Promise<bool> = Promise::new("consent");

/// Waits for consent.
#[workflow]
async fn order(ctx: Ctx, cents: u64) -> Result<u64, Failure> {
    ctx.on_query(TOTAL, move |more| Ok(cents + more));
    ctx.on_update(
        ADD,
        |cents| if *cents > 0 { Ok(()) } else { Err(format!("{cents} cents is no price").into()) },
        move |more| async move { if more > 9_000 { Err("there is no such lamp".into()) } else { Ok(cents + more) } },
    );
    if cents == 13 {
        return Err(Failure::application("13 brings bad luck"));
    }
    if cents > 0 {
        ctx.promise(CONSENT).await?;
        ctx.sleep(days(1)).await?;
    }
    Ok(cents)
}

/// An app whose payloads have 1,000 bytes at most.
async fn app() -> App {
    Dacapo::open("memory:").await.unwrap().settings(|app| app.payload_limit(1_000)).serve(order).await.unwrap()
}

/// Starts that are refused.
pub(crate) async fn start(page: &mut Page) {
    let app = app().await;
    page.error("start a workflow that is not served", app.start_raw("odrer", [json!(1)]).await);
    page.error("start without a workflow's name", app.start_raw("", [json!(1)]).await);
    page.error("start with an empty workflow id", app.start(order, 1).id("").await);
    page.error("start with a workflow id that is too long", app.start(order, 1).id("x".repeat(1_204)).await);
    page.error("start with a line break in the workflow id", app.start(order, 1).id("order\n42").await);
    page.error("start with an empty request id", app.start(order, 1).request_id("").await);
    page.error("start with an empty queue", app.start(order, 1).queue("").await);
    page.error("start with an input that is too large", app.start_raw("order", [json!("x".repeat(1_500))]).await);
    page.error("start with a run timeout of zero", app.start(order, 1).run_timeout(secs(0)).await);
    let shrinking = Retry::exponential().factor(0.5);
    page.error("start with pauses that become shorter", app.start(order, 1).retry(shrinking).await);

    app.start(order, 1).id("order-42").request_id("request-7").await.unwrap();
    page.error("start with a workflow id that is in use", app.start(order, 2).id("order-42").await);
    let again = app.start(order, 2).id("order-42").request_id("request-7").await;
    page.error("use a request id again for another input", again);
    app.start(order, 0).id("order-1").await.unwrap().result().await.unwrap();
    let again = app.start(order, 0).id("order-1").id_reuse(IdReuse::RejectDuplicate).await;
    page.error("use a workflow id again where that is not allowed", again);
}

/// Messages, questions and changes that are refused.
pub(crate) async fn talk(page: &mut Page) {
    let app = app().await;
    let open = app.start(order, 5).id("open").await.unwrap();
    let closed = app.start(order, 0).id("closed").await.unwrap();
    closed.result().await.unwrap();
    let absent = app.handle(order, "absent");

    page.error("signal a run that does not exist", absent.signal(CANCEL, "late".into()).await);
    page.error("signal a run id that does not exist", open.clone().with_run_id("r-1").signal(CANCEL, "x".into()).await);
    page.error("signal a run that is closed", closed.signal(CANCEL, "late".into()).await);
    page.error("signal without a name", open.signal_raw("", json!(1)).await);
    page.error("signal with a value that is too large", open.signal_raw("cancel", json!("x".repeat(1_500))).await);
    page.error("ask a query that has no handler", open.query_raw("totl", json!(1)).await);
    page.error("ask a query with a value of another type", open.query_raw("total", json!("many")).await);
    page.error("decode an answer as another type", open.query(Query::<u64, String>::new("total"), 1).await);
    page.error("send an update that has no handler", open.update_raw("ad", json!(1)).await);
    page.error("send an update that the validator refuses", open.update(ADD, 0).await);
    page.error("send an update of another type", open.update_raw("add", json!("more")).await);
    page.error("send an update whose handler fails", open.update(ADD, 9_999).await);
    page.error("resolve a promise that is not open", open.resolve(Promise::<bool>::new("consnet"), true).await);
    open.resolve(CONSENT, true).await.unwrap();
    page.error("resolve a promise twice", open.resolve(CONSENT, false).await);
    page.error("complete an activity that is not pending", open.complete_activity("charge-1", &1).await);
    page.error("complete with a text that is no token", app.complete("order-42", &1).await);
    page.error("complete with a damaged token", app.complete("dcpt100", &1).await);
    page.error("reset to a turn that does not exist", open.reset(77, "bad deploy").await);
    page.error("reset to the turn that starts the run", open.reset(0, "bad deploy").await);
    page.error("delete a run that is open", open.delete().await);
    page.error("release a run that is not quarantined", open.release().await);
    page.error("list with a damaged cursor", {
        let cursor = serde_json::from_value::<dacapo::Cursor>(json!("page 2")).unwrap();
        app.runs().list_from(&Filter::all(), cursor, 10).await
    });
}

/// Results of runs that did not complete.
pub(crate) async fn finish(page: &mut Page) {
    let app = app().await;
    let failed = app.start(order, 13).id("order-13").await.unwrap();
    page.error("wait for the result of a run that fails", failed.result().await);
    let terminated = app.start(order, 5).id("order-5").await.unwrap();
    terminated.terminate("sold out").await.unwrap();
    page.error("wait for the result of a run that was terminated", terminated.result().await);
    let completed = app.start(order, 0).id("order-0").await.unwrap();
    completed.result().await.unwrap();
    page.error("decode a result as another type", app.handle_of::<String>("order-0").result().await);
    let connection = (*app).clone();
    app.stop().await;
    page.error("call an app that is shut down", connection.start(order, 1).await);
}

/// Files of histories, and backups, that cannot be.
pub(crate) async fn archives(page: &mut Page) {
    let app = app().await;
    let folder = tempdir().unwrap();
    app.start(order, 0).id("order-1").await.unwrap().result().await.unwrap();
    let (_, archive) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    let text = String::from_utf8(archive).unwrap();
    let changed = text.replacen("order-1", "order-9", 1);
    let cut = text.lines().next().unwrap().to_owned() + "\n";
    page.error("import a file that is no archive", app.import(Cursor::new("Dear Ada,\n")).await);
    page.error("import an archive that was changed", app.import(Cursor::new(changed)).await);
    page.error("import an archive that was cut", app.import(Cursor::new(cut)).await);
    let missing = folder.path().join("missing/orders.jsonl");
    page.error("export into a folder that does not exist", app.runs().export_to_file(&Filter::all(), missing).await);
    page.error("back up a store in memory", app.runs().back_up(folder.path().join("copy.db")).await);
}
