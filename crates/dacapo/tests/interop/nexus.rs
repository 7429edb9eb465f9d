//! Nexus operations of Python, which workflows of Dacapo call.

use dacapo::json::{Value, json};
use dacapo::prelude::*;

use super::{Namespace, Order, PYTHON, Receipt, lamp, play};

/// Returns the answer of an operation that answers at once.
#[workflow]
async fn asks(ctx: Ctx, endpoint: String) -> Result<Value, Failure> {
    let asked = ctx.nexus::<_, Receipt>(endpoint.clone(), "Quotes", "quote", &lamp());
    let asked = asked.with(|call| drop(call.headers.insert("tenant".into(), "ada".into())));
    let quote = asked.started().await?;
    let token = quote.token().to_string();
    let receipt: Receipt = ctx.decode(&quote.await?)?;
    let refused = ctx.nexus::<_, Receipt>(endpoint, "Quotes", "refuse", &lamp()).await.unwrap_err();
    let FailureKind::Nexus(failed) = &refused.kind else { return Err(refused) };
    Ok(json!({
        "token": token,
        "receipt": receipt,
        "failed": failed.operation,
        "reason": refused.root_cause().message,
    }))
}

/// Returns the result of an operation that is a workflow.
#[workflow]
async fn orders(ctx: Ctx, endpoint: String) -> Result<(bool, Receipt), Failure> {
    let begun = ctx.nexus::<_, Receipt>(endpoint, "Quotes", "deliver", &lamp()).started().await?;
    let has_token = !begun.token().is_empty();
    Ok((has_token, ctx.decode(&begun.await?)?))
}

/// Creates an endpoint that leads to the queue of Python. Those of a server are of all its namespaces.
fn endpoint(namespace: &Namespace, name: &str) -> String {
    let name = format!("{name}-{}", namespace.name);
    let target = ["--target-task-queue", PYTHON, "--target-namespace", &namespace.name];
    namespace.server.tool(&[&["operator", "nexus", "endpoint", "create", "--name", &name], &target[..]].concat());
    name
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_workflow_gets_the_answer_and_the_failure_of_python_operations() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(asks).await;
        let seen = app.start(asks, endpoint(namespace, "asks")).await.unwrap().result().await.unwrap();
        let noted = Order { notes: [lamp().notes, vec!["ada".to_owned()]].concat(), ..lamp() };
        let expected = json!({
            "token": "",
            "receipt": { "order": noted, "total": 5.0 },
            "failed": "refuse",
            "reason": "no lamp is left",
        });
        assert_eq!(seen, expected);
        app.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dacapo_workflow_gets_the_token_and_the_result_of_a_python_operation_that_is_a_workflow() {
    play(async |namespace| {
        let _worker = namespace.serve_python().await;
        let app = namespace.serve(orders).await;
        let run = app.start(orders, endpoint(namespace, "orders")).id("run").await.unwrap();
        assert_eq!(run.result().await, Ok((true, Receipt { order: lamp(), total: 7.5 })));
        let story = run.history().await.unwrap().to_text();
        assert!(story.contains("deliver"), "{story}");
        app.shutdown().await;
    })
    .await;
}
