//! The move from a file to a cluster, as the guide shows it: old runs finish on the file, new ones start on the cluster.

use dacapo::prelude::*;
use dacapo::{ClientError, Error};

use crate::{Namespace, within};

const GUIDE: &str = include_str!("../../../docs/move-to-temporal.md");
const THIS: &str = include_str!("moving.rs");
const PAID: Signal<()> = Signal::new("paid");

#[activity]
async fn charge(order: String) -> Result<String, Failure> {
    Ok(format!("{order}: charged"))
}

#[workflow]
async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> {
    ctx.next_signal(PAID).await?;
    ctx.call(charge, order).await
}

/// The run of an order: on the file if it began there, otherwise on the cluster, where it begins now unless it has begun before.
async fn run_of(order: &str, file: &App, cluster: &App) -> dacapo::Result<Handle<String>> {
    let on_file = file.handle(checkout, order);
    match on_file.describe().await {
        Ok(_) => Ok(on_file),
        Err(Error::Client(ClientError::NotFound { .. })) => {
            cluster.start(checkout, order.to_owned()).id(order).request_id(order).await
        }
        Err(error) => Err(error),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_began_on_a_file_end_there_and_new_ones_go_to_the_cluster() {
    let (namespace, folder) = (Namespace::new(), tempfile::tempdir().unwrap());
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    let code = || (checkout, charge);
    let before = Dacapo::open(&url).await.unwrap().serve(code()).await.unwrap();
    before.start(checkout, "order-1".to_owned()).id("order-1").await.map(drop).unwrap();
    before.shutdown().await;

    let file = Dacapo::open(&url).await.unwrap().serve(code()).await.unwrap();
    let cluster = namespace.serve(code()).await;
    let old = run_of("order-1", &file, &cluster).await.unwrap();
    let new = run_of("order-2", &file, &cluster).await.unwrap();
    let again = run_of("order-2", &file, &cluster).await.unwrap();
    assert_eq!(new.run_id(), again.run_id());
    assert_eq!(file.runs().count(&Filter::open()).await, Ok(1));
    for run in [&old, &new] {
        run.signal(PAID, ()).await.unwrap();
    }
    assert_eq!(within("it ends", old.result()).await.as_deref(), Ok("order-1: charged"));
    assert_eq!(within("it ends", again.result()).await.as_deref(), Ok("order-2: charged"));
    assert_eq!(file.runs().count(&Filter::open()).await, Ok(0), "the next deploy serves the cluster alone");
    assert!(namespace.event_types("order-2").iter().any(|event| event == "WORKFLOW_EXECUTION_COMPLETED"));
    let elsewhere = cluster.handle(checkout, "order-1").describe().await.map(drop);
    assert!(matches!(elsewhere, Err(Error::Client(ClientError::NotFound { .. }))), "{elsewhere:?}");
    file.shutdown().await;
    cluster.shutdown().await;
}

#[test]
fn guide_shows_the_function_that_is_tested() {
    let begin = THIS.find("/// The run of an order").unwrap();
    let end = begin + THIS[begin..].find("\n}\n").unwrap();
    assert!(
        GUIDE.contains(&THIS[begin..end]),
        "docs/move-to-temporal.md has another function than examples/tests/cluster/moving.rs"
    );
}
