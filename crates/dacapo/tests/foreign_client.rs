//! A backend that has nothing but the trait `Client`: typed calls work over it, and the rest is refused by name.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use dacapo::backend::{
    Capabilities, Client, ClientFuture, CompleteActivity, Count, Cursor, Description, Error, Feature, Filter, GroupBy,
    HistoryPage, Page, PollUpdate, QueryRun, RawHistory, RunRef, RunResult, SendSignal, SendUpdate, StartRun, Started,
    UpdateState,
};
use dacapo::prelude::*;
use dacapo::{ClientError, Connection, Name, Payload};

/// Keeps runs in a map: a signal `done` completes one with its first value.
struct Foreign {
    capabilities: Capabilities,
    runs: Mutex<BTreeMap<Name, Description>>,
}

impl Foreign {
    fn new() -> Arc<Self> {
        let capabilities = Capabilities::new("foreign", [Feature::Writing]);
        Arc::new(Self { capabilities, runs: Mutex::default() })
    }

    fn with<T: Send + 'static>(&self, run: &RunRef, act: impl FnOnce(&mut Description) -> T) -> ClientFuture<T> {
        let missing = || Error::NotFound { workflow_id: run.workflow_id.clone(), run_id: run.run_id.clone() };
        Box::pin(ready(self.runs.lock().unwrap().get_mut(&run.workflow_id).map(act).ok_or_else(missing)))
    }

    fn lacks<T: Send + 'static>(&self, feature: Feature) -> ClientFuture<T> {
        Box::pin(ready(Err(Error::Unsupported { feature, backend: self.capabilities.backend.clone() })))
    }
}

impl Client for Foreign {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn start(&self, start: StartRun) -> ClientFuture<Started> {
        let mut run = Description::new(start.workflow_id.clone(), "run-1".into());
        (run.workflow, run.memo) = (start.workflow, start.memo);
        self.runs.lock().unwrap().insert(start.workflow_id.clone(), run);
        Box::pin(ready(Ok(Started::new(RunRef::exact(start.workflow_id, "run-1"), true))))
    }

    fn signal(&self, run: RunRef, signal: SendSignal) -> ClientFuture<()> {
        self.with(&run, |run| {
            run.status = Status::Completed;
            run.result = Some(Ok(signal.input.into_iter().next().unwrap_or_default()));
        })
    }

    fn result(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.with(&run, |run| RunResult::new(run.status, run.result.clone().unwrap_or_else(|| Ok(Payload::empty()))))
    }

    fn describe(&self, run: RunRef) -> ClientFuture<Description> {
        self.with(&run, |run| run.clone())
    }

    fn terminate(&self, run: RunRef, _: String) -> ClientFuture<()> {
        self.with(&run, |run| run.status = Status::Terminated)
    }

    fn list(&self, _: Filter, _: Option<Cursor>, _: usize) -> ClientFuture<Page> {
        Box::pin(ready(Ok(Page::new(self.runs.lock().unwrap().values().cloned().collect(), None))))
    }

    fn count(&self, _: Filter) -> ClientFuture<u64> {
        Box::pin(ready(Ok(self.runs.lock().unwrap().len() as u64)))
    }

    fn counts(&self, _: Filter, _: Option<GroupBy>) -> ClientFuture<Vec<Count>> {
        Box::pin(ready(Ok(vec![Count::new(None, self.runs.lock().unwrap().len() as u64)])))
    }

    fn query(&self, _: RunRef, _: QueryRun) -> ClientFuture<Payload> {
        self.lacks(Feature::Queries)
    }

    fn update(&self, _: RunRef, _: SendUpdate) -> ClientFuture<UpdateState> {
        self.lacks(Feature::Queries)
    }

    fn update_result(&self, _: RunRef, _: PollUpdate) -> ClientFuture<UpdateState> {
        self.lacks(Feature::Queries)
    }

    fn cancel(&self, _: RunRef, _: String) -> ClientFuture<()> {
        self.lacks(Feature::Writing)
    }

    fn reset(&self, _: RunRef, _: u64, _: String) -> ClientFuture<Started> {
        self.lacks(Feature::Writing)
    }

    fn history(&self, _: RunRef, _: Option<Cursor>, _: usize) -> ClientFuture<HistoryPage> {
        Box::pin(ready(Ok(HistoryPage::new(Vec::new(), None))))
    }

    fn raw_history(&self, _: RunRef) -> ClientFuture<RawHistory> {
        self.lacks(Feature::Archive)
    }

    fn complete(&self, _: String, _: Result<Payload, Failure>) -> ClientFuture<()> {
        self.lacks(Feature::Writing)
    }

    fn heartbeat(&self, _: String, _: Payload) -> ClientFuture<Option<String>> {
        self.lacks(Feature::Writing)
    }

    fn complete_activity(&self, _: RunRef, _: CompleteActivity) -> ClientFuture<()> {
        self.lacks(Feature::Writing)
    }
}

const DONE: Signal<u64> = Signal::new("done");

#[workflow]
async fn waits(ctx: Ctx, order: String) -> Result<u64, Failure> {
    let _ = order;
    ctx.next_signal(DONE).await
}

#[tokio::test]
async fn typed_calls_work_over_a_client_of_another_backend() {
    let connection = Connection::over(Foreign::new());
    let run = connection.start(waits, "two lamps".into()).id("order-42").memo("customer", "Ada").await.unwrap();
    let described = run.describe().await.unwrap();
    assert_eq!((described.workflow.as_str(), described.status), ("waits", Status::Open));
    assert_eq!(connection.decode::<String>(&described.memo["customer"]), Ok("Ada".to_owned()));
    connection.handle(waits, "order-42").signal(DONE, 7).await.unwrap();
    assert_eq!(run.result().await, Ok(7));
    assert_eq!(connection.runs().count(&dacapo::Filter::all()).await, Ok(1));
    assert_eq!(run.history().await.unwrap().len(), 0);
    let absent = connection.handle_raw("absent").describe().await.unwrap_err();
    assert!(matches!(absent, dacapo::Error::Client(ClientError::NotFound { .. })), "{absent}");
}

#[tokio::test]
async fn calls_that_another_backend_lacks_are_refused_by_feature_and_backend() {
    let connection = Connection::over(Foreign::new());
    let run = connection.start(waits, "two lamps".into()).id("a").await.unwrap();
    let runs = connection.runs();
    let told = [
        (run.result_or_stuck().await.map(drop), "waits that end when a run is stuck"),
        (run.inspect().await.map(drop), "inspection"),
        (run.release().await, "quarantine"),
        (run.delete().await, "deletion"),
        (run.resolve(Promise::<u64>::new("p"), 1).await, "promises"),
        (run.query_raw("seen", dacapo::json::json!(null)).await.map(drop), "queries"),
        (run.transcript().await.map(drop), "export and import"),
        (runs.verify(|_| {}).await.map(drop), "verification"),
        (runs.back_up("elsewhere.db").await, "backup"),
        (runs.export(&dacapo::Filter::all(), Vec::new()).await.map(drop), "export and import"),
        (runs.stuck_runs().await.map(drop), "lists of stuck runs"),
    ];
    for (answer, feature) in told {
        let refused = answer.unwrap_err().to_string();
        let words = format!("this backend (foreign) does not support {feature}");
        assert!(refused.starts_with(&words), "{refused}, and not {words}");
    }
}
