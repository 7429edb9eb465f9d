//! The client of the API is a client like any other.

use dacapo_client::{Error, Feature, Filter, QueryRun, RunRef, SendSignal, StartRun, Status};
use dacapo_control::{RemoteClient, Target};
use dacapo_core::Payload;

use crate::served::{OPERATE, READ, Served};

async fn client(served: &Served, token: &str) -> std::sync::Arc<dyn dacapo_client::Client> {
    let target = Target::parse(&format!("http://{token}@{}", served.address)).unwrap();
    RemoteClient::connect(target).await.unwrap()
}

#[tokio::test]
async fn run_is_started_asked_signalled_and_awaited_through_the_api() {
    let served = Served::new().await;
    let client = client(&served, OPERATE).await;
    assert_eq!(client.capabilities().backend, "memory");
    assert!(client.capabilities().has(Feature::Inspection));
    let start = StartRun {
        workflow: "order".into(),
        workflow_id: "order-1".into(),
        input: vec![Payload::json("7")],
        ..StartRun::default()
    };
    let started = client.start(start).await.unwrap();
    assert!(started.is_new);
    let run = RunRef::latest("order-1");
    let owed = QueryRun { name: "owed".into(), ..QueryRun::default() };
    assert_eq!(client.query(run.clone(), owed).await.unwrap(), Payload::json("7"));
    let listed = client.list(Filter::open(), None, 10).await.unwrap();
    assert_eq!(listed.runs.len(), 1);
    let waits = tokio::spawn({
        let (client, run) = (client.clone(), run.clone());
        async move { client.result(run).await }
    });
    let paid = SendSignal { name: "paid".into(), input: vec![Payload::json("7")], ..SendSignal::default() };
    client.signal(run.clone(), paid).await.unwrap();
    let result = waits.await.unwrap().unwrap();
    assert_eq!((result.status, result.result), (Status::Completed, Ok(Payload::json("7"))));
    assert_eq!(client.history(run, None, 100).await.unwrap().events.len(), served_events(&served).await);
}

async fn served_events(served: &Served) -> usize {
    let run = RunRef::latest("order-1");
    served.app.client().history(run, None, 100).await.unwrap().events.len()
}

#[tokio::test]
async fn error_of_the_backend_is_the_error_of_the_call() {
    let served = Served::new().await;
    let client = client(&served, OPERATE).await;
    let missing = client.describe(RunRef::latest("order-9")).await.unwrap_err();
    assert_eq!(missing, Error::NotFound { workflow_id: "order-9".into(), run_id: None });
    let filter = Filter { search: Some("total > 3".parse().unwrap()), ..Filter::default() };
    assert_eq!(client.count(filter).await, Ok(0));
}

#[tokio::test]
async fn what_a_token_does_not_allow_is_refused_by_name() {
    let served = Served::new().await;
    served.start("order-1", 7).await;
    let reader = client(&served, READ).await;
    assert_eq!(reader.describe(RunRef::latest("order-1")).await.unwrap().status, Status::Open);
    let refused = reader.terminate(RunRef::latest("order-1"), String::new()).await.unwrap_err().to_string();
    assert!(
        refused.contains("`terminate` needs the role `operate`, and the caller, token of role read, may only read"),
        "{refused}"
    );
    assert_eq!(reader.describe(RunRef::latest("order-1")).await.unwrap().status, Status::Open);
    let stranger = Target::parse(&format!("http://wrong-token@{}", served.address)).unwrap();
    let refused = RemoteClient::connect(stranger).await.err().unwrap().to_string();
    assert!(refused.contains("unknown token") && refused.contains("`http://TOKEN@HOST:PORT`"), "{refused}");
    let nameless = Target::parse(&format!("http://{}", served.address)).unwrap();
    let refused = RemoteClient::connect(nameless).await.err().unwrap().to_string();
    assert!(refused.contains("this needs a token") && refused.contains("`http://TOKEN@HOST:PORT`"), "{refused}");
}

#[tokio::test]
async fn server_that_is_not_there_or_is_another_one_is_named() {
    let gone = RemoteClient::connect(Target::parse("unix:/no/such/socket").unwrap()).await.err().unwrap().to_string();
    assert!(gone.contains("unix:/no/such/socket cannot be reached"), "{gone}");
    let folder = tempfile::tempdir().unwrap();
    for name in ["orders.db", "orders.db-control"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let file = format!("unix:{}", folder.path().join("orders.db").display());
    let refused = RemoteClient::connect(Target::parse(&file).unwrap()).await.err().unwrap().to_string();
    assert!(refused.contains(&format!("connect to `{file}-control`")), "{refused}");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let other = axum::Router::new().fallback(|| async { "hello" });
    tokio::spawn(async move { axum::serve(listener, other).await });
    let target = Target::parse(&format!("http://{address}")).unwrap();
    let strange = RemoteClient::connect(target).await.err().unwrap().to_string();
    assert!(strange.contains("answers, but not as a control API"), "{strange}");
}
