//! No server, and a server that goes away.

use dacapo::prelude::*;
use dacapo::{ClientError, Error};
use dacapo_testkit::TemporalServer;

use crate::within;

const ADD: Signal<u64> = Signal::new("add");

#[activity]
async fn double(n: u64) -> Result<u64, Failure> {
    Ok(n * 2)
}

#[workflow]
async fn doubles(ctx: Ctx) -> Result<u64, Failure> {
    let first = ctx.call(double, ctx.next_signal(ADD).await?).start_to_close(secs(5)).await?;
    Ok(first + ctx.call(double, ctx.next_signal(ADD).await?).start_to_close(secs(5)).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_goes_on_when_its_server_comes_back() {
    let mut server = TemporalServer::start();
    let url = server.url("default");
    let app = Dacapo::open(&url).await.unwrap().serve((doubles, double)).await.unwrap();
    let run = app.start(doubles, ()).id("run").await.unwrap();
    run.signal(ADD, 1).await.unwrap();
    let waiting = tokio::spawn({
        let run = run.clone();
        async move { run.result().await }
    });
    server.stop();
    let refused = within("it is refused", run.signal(ADD, 20).into_future()).await.unwrap_err();
    assert!(matches!(&refused, Error::Client(ClientError::Unavailable(_))), "{refused}");
    assert!(refused.to_string().contains("cannot be reached"), "{refused}");
    let no_server = within("it is refused", Dacapo::open(&url)).await.map(drop).unwrap_err().to_string();
    let port = server.port().to_string();
    assert!(no_server.contains(&port) && no_server.contains("temporal server start-dev"), "{no_server}");
    server.restart();
    within("it is sent", async { while run.signal(ADD, 20).request_id("twenty").await.is_err() {} }).await;
    assert_eq!(within("it ends", waiting).await.unwrap(), Ok(42));
    app.shutdown().await;
}

#[tokio::test]
async fn namespace_that_does_not_exist_is_refused_with_what_to_do() {
    let server = TemporalServer::shared();
    let opened = Dacapo::open(&server.url("no-such-namespace")).await.unwrap();
    let refused = opened.serve(doubles).await.map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("no-such-namespace") && refused.contains("temporal operator namespace create"),
        "{refused}"
    );
    let connection = Dacapo::connect(&server.url("no-such-namespace")).await.unwrap();
    let refused = connection.start(doubles, ()).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("no-such-namespace"), "{refused}");
}
