//! Headers, memos and search attributes that one side sets and the other reads.

use dacapo::core::Headers;
use dacapo::json::{Value, json};
use dacapo::prelude::*;
use dacapo::{AttributeValue, Payload, decode};

use super::{PYTHON, play};

const CITY: Attr<String> = Attr::new("city");

/// Returns what its start was labelled with, and labels the run anew.
#[workflow]
async fn label(ctx: Ctx) -> Result<Value, Failure> {
    let start = ctx.info().start;
    let seen = json!({
        "tenant": start.headers.get("tenant").map(|tenant| ctx.decode::<String>(tenant)).transpose()?,
        "customer": ctx.memo::<Value>("customer"),
        "city": ctx.attr(CITY),
        "tenant of activity": ctx.call_raw("name_tenant", []).queue(PYTHON).header("tenant", "grace").await?,
    });
    ctx.set_memo("customer", &json!({ "name": "Grace" }));
    ctx.set_attr(CITY, "Porto".into());
    Ok(seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn header_memo_and_attribute_of_a_python_client_are_read_by_a_dacapo_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(label).await;
        let seen = namespace.ask_python("label").await;
        let expected = json!({
            "seen": {
                "tenant": "ada",
                "customer": { "name": "Ada" },
                "city": "Lisboa",
                "tenant of activity": "grace",
            },
            "customer": { "name": "Grace" },
            "city": "Porto",
        });
        assert_eq!(seen, expected);
        app.shutdown().await;
    })
    .await;
}

fn tenant(headers: &Headers) -> Result<Payload, Failure> {
    headers.get("tenant").cloned().ok_or_else(|| "there is no tenant".into())
}

/// Answers messages with the header that came with them.
#[workflow]
async fn overhear(ctx: Ctx) -> Result<String, Failure> {
    ctx.raw().on_query("ask", |query| tenant(&query.headers));
    ctx.raw().on_update("change", |_| Ok(()), async |update| tenant(&update.headers));
    let told = ctx.raw().next_signal("tell").await?;
    ctx.decode(&tenant(&told.headers)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_messages_of_a_python_client_are_read_by_a_dacapo_workflow() {
    play(async |namespace| {
        let app = namespace.serve(overhear).await;
        let expected = json!({ "query": "ada", "update": "ada", "signal": "grace" });
        assert_eq!(namespace.ask_python("overhear").await, expected);
        app.shutdown().await;
    })
    .await;
}

const TELL: Signal<()> = Signal::new("tell");
const CHANGE: Update<(), ()> = Update::new("change");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_messages_of_a_dacapo_client_are_read_by_a_python_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let client = namespace.connect().await;
        let run = client.start_raw("Overhear", []).queue(PYTHON).await.unwrap();
        run.update(CHANGE, ()).header("tenant", "ada").await.unwrap();
        run.signal(TELL, ()).header("tenant", "grace").await.unwrap();
        assert_eq!(run.result().await, Ok(json!(["ada", "grace"])));
    })
    .await;
}

#[workflow]
async fn unlabel(ctx: Ctx) -> Result<(), Failure> {
    ctx.remove_memo("customer");
    ctx.remove_attr(CITY);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memo_and_attribute_removed_by_a_dacapo_workflow_are_gone_for_a_python_client() {
    play(async |namespace| {
        let app = namespace.serve(unlabel).await;
        assert_eq!(namespace.ask_python("unlabel").await, json!({ "memo": {}, "city": null }));
        app.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memo_and_attribute_removed_by_a_python_workflow_are_gone_for_a_dacapo_client() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let client = namespace.connect().await;
        let start = client.start_raw("Unlabel", []).queue(PYTHON).memo("customer", "Ada").attr(CITY, "Lisboa".into());
        let run = start.await.unwrap();
        assert_eq!(run.result().await, Ok(Value::Null));
        let described = run.describe().await.unwrap();
        assert!(described.memo.is_empty(), "{:?}", described.memo);
        assert_eq!(described.attributes.get("city"), None);
    })
    .await;
}

#[activity]
async fn tenant_of(ctx: ActivityCtx) -> Result<Option<String>, Failure> {
    ctx.info().headers.get("tenant").map(|tenant| ctx.decode(tenant)).transpose()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn header_memo_and_attribute_of_a_dacapo_client_are_read_by_a_python_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(tenant_of).await;
        let run = (app.start_raw("Label", []).queue(PYTHON))
            .header("tenant", "ada")
            .memo("customer", &json!({ "name": "Ada" }))
            .attr(CITY, "Lisboa".into())
            .await
            .unwrap();
        let expected = json!({
            "tenant": "ada",
            "customer": { "name": "Ada" },
            "city": "Lisboa",
            "tenant of activity": "ada",
        });
        assert_eq!(run.result().await, Ok(expected));
        let described = run.describe().await.unwrap();
        assert_eq!(decode(&described.memo["customer"]), Ok(json!({ "name": "Grace" })));
        assert_eq!(described.attributes.get("city"), Some(&AttributeValue::from("Porto")));
        app.shutdown().await;
    })
    .await;
}
