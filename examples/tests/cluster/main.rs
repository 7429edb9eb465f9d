//! Programs on a real Temporal server: workers that die and come back, changed code, small caches, outages. Each test has a namespace
//! of its own.

mod caches;
mod commands;
mod containment;
mod crashes;
mod deploys;
mod fields;
mod limits;
mod local_work;
mod moving;
mod refusals;
mod security;
mod server;
mod tools;

use std::time::Duration;

use dacapo::{App, Dacapo, Description, Handle, Register};
use dacapo_testkit::TemporalServer;

/// The longest that a test waits for anything.
const LIMIT: Duration = Duration::from_secs(120);

/// A namespace of the server that tests share.
struct Namespace {
    server: TemporalServer,
    name: String,
    url: String,
}

impl Namespace {
    fn new() -> Self {
        let server = TemporalServer::shared();
        let name = server.new_namespace();
        let url = server.url(&name);
        Self { server, name, url }
    }

    async fn open(&self) -> Dacapo {
        Dacapo::open(&self.url).await.expect("the server runs")
    }

    async fn serve<P>(&self, items: impl Register<P>) -> App {
        self.open().await.serve(items).await.expect("it can be served")
    }

    /// Runs a command of Temporal's tool in this namespace.
    fn tool(&self, arguments: &[&str]) -> String {
        self.server.tool(&[arguments, &["--namespace", &self.name]].concat())
    }

    /// The events of a run, as the server's tool prints them.
    fn events(&self, workflow_id: &str) -> Vec<serde_json::Value> {
        let json = self.tool(&["workflow", "show", "--workflow-id", workflow_id, "--output", "json"]);
        let history: serde_json::Value = serde_json::from_str(&json).expect("the tool prints JSON");
        history["events"].as_array().cloned().unwrap_or_default()
    }

    /// The types of these events, without their common beginning.
    fn event_types(&self, workflow_id: &str) -> Vec<String> {
        let name = |event: &serde_json::Value| {
            event["eventType"].as_str().unwrap_or_default().trim_start_matches("EVENT_TYPE_").to_owned()
        };
        self.events(workflow_id).iter().map(name).collect()
    }
}

/// Asks again and again until there is an answer.
async fn wait<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            match ask().await {
                Some(answer) => return answer,
                // sleep: the server tells nothing of what these tests wait for, so it is asked again.
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, asking).await.unwrap_or_else(|_| panic!("{what} within {LIMIT:?}"))
}

/// Describes a run once it is as described.
async fn described<O>(what: &str, run: &Handle<O>, is: impl Fn(&Description) -> bool) -> Description {
    wait(what, async || Some(run.describe().await.expect("the run is there")).filter(|run| is(run))).await
}

/// Waits for an answer, within the limit.
async fn within<T>(what: &str, answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, answer).await.unwrap_or_else(|_| panic!("{what} within {LIMIT:?}"))
}
