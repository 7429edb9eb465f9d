//! A cluster that cannot be named or reached, and histories that cannot be replayed: what needs no server.

use std::net::TcpListener;

use dacapo::Dacapo;
use dacapo::prelude::*;
use tempfile::tempdir;

use crate::cause::Page;

#[workflow]
async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> {
    ctx.sleep(days(1)).await?;
    Ok(order)
}

/// URLs that name no cluster.
pub(crate) async fn urls(page: &mut Page) {
    for (cause, url) in [
        ("write the host without slashes", "temporal:localhost"),
        ("give a port that is none", "temporal://cluster:72333/shop"),
        ("put a slash into the namespace", "temporal://localhost/shop/orders"),
        ("put a key into the URL", "temporal://key@localhost/shop"),
        ("leave a parameter empty", "temporal://localhost/shop?queue="),
        ("misspell a parameter", "temporal://localhost/shop?que=orders"),
        ("give a word for true or false", "temporal://localhost/shop?tls=yes"),
        ("give a time without its unit", "temporal://localhost/shop?start_to_close=90"),
        ("put a space into the host", "temporal://local host/shop"),
    ] {
        page.error(cause, Dacapo::open(url).await);
    }
}

/// Settings of a connection that cannot be used, and a server that is not there.
pub(crate) async fn connections(page: &mut Page) {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let with = |name: &str| format!("temporal://localhost/shop?config={}", path(name));
    std::fs::write(path("letter.toml"), "Dear Ada").unwrap();
    page.error("name a configuration that is no TOML", Dacapo::open(&with("letter.toml")).await);
    std::fs::write(path("temporal.toml"), "[profile.test]\nnamespace = \"shop\"\n").unwrap();
    let profile = format!("{}&profile=prod", with("temporal.toml"));
    page.error("name a profile that the configuration has not", Dacapo::open(&profile).await);
    // A port that is free, as far as anything can be known of it.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Dacapo::open(&format!("temporal://127.0.0.1:{port}/shop")).await.map(drop).unwrap_err();
    page.text("open a cluster whose server does not run", &error.to_string().replace(&port.to_string(), "PORT"));
}

/// Histories that cannot be replayed.
pub(crate) fn histories(page: &mut Page) {
    let start = |queue: &str| {
        format!(
            r#"{{ "events": [{{
                "eventId": "1", "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED",
                "workflowExecutionStartedEventAttributes": {{ "workflowType": {{ "name": "checkout" }}{queue} }}
            }}] }}"#
        )
    };
    let cut = start("");
    let whole = r#", "workflowId": "order-42", "taskQueue": { "name": "orders" }, "originalExecutionRunId": "run-7""#;
    let started = start(whole);
    for (cause, history) in [
        ("replay a text that is no JSON", "Dear Ada"),
        ("replay JSON that is no history", r#"{ "greeting": "Dear Ada" }"#),
        ("replay a history without events", r#"{ "events": [] }"#),
        // This one waited for ever.
        ("replay a history that was cut", &cut),
        ("replay a history without a workflow task", &started),
    ] {
        page.error(cause, dacapo::temporal::replay(checkout, history));
    }
    page.error("replay with one workflow twice", dacapo::temporal::replay((checkout, checkout), &started));
}
