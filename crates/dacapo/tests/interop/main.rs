//! Programs of Dacapo and of Temporal's Python SDK on one server: workflows, activities and clients of one side serve the other.

mod children;
mod dacapo_workflows;
mod labels;
mod nexus;
mod python;
mod python_workers;

use std::time::Duration;

use dacapo::json::Value;
use dacapo::prelude::*;
use dacapo::{Connection, Register};
use dacapo_testkit::TemporalServer;
use serde::{Deserialize, Serialize};

use python::Python;

/// The queue that Python serves.
const PYTHON: &str = "python";
/// The longest that one case may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// `Order` of `orders.py`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    amount: i64,
    notes: Vec<String>,
}

/// `Receipt` of `orders.py`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    order: Order,
    total: f64,
}

fn order(item: &str, amount: i64, notes: &[&str]) -> Order {
    Order { item: item.to_owned(), amount, notes: notes.iter().map(|&note| note.to_owned()).collect() }
}

fn lamp() -> Order {
    order("lamp", 2, &["bright", "für Ada"])
}

/// A namespace of a test.
struct Namespace {
    server: TemporalServer,
    name: String,
}

impl Namespace {
    fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Serves workflows and activities of Dacapo.
    async fn serve<P>(&self, items: impl Register<P>) -> App {
        Dacapo::open(&self.url()).await.expect("it can be opened").serve(items).await.expect("it can be served")
    }

    /// Connects a client of Dacapo.
    async fn connect(&self) -> Connection {
        Dacapo::connect(&self.url()).await.expect("it can be connected to")
    }

    /// Serves the workflows and activities of `worker.py`.
    async fn serve_python(&self) -> Python {
        let mut worker = self.start_python("worker.py", &[]);
        worker.prints("ready").await;
        worker
    }

    /// Returns what a function of `client.py` sees.
    async fn ask_python(&self, function: &str) -> Value {
        self.start_python("client.py", &[function]).answer().await
    }

    fn start_python(&self, script: &str, arguments: &[&str]) -> Python {
        let address = format!("127.0.0.1:{}", self.server.port());
        Python::start(script, &[&[address.as_str(), &self.name], arguments].concat())
    }
}

/// Plays a case in a namespace of its own, within the limit.
async fn play(case: impl AsyncFnOnce(&Namespace)) {
    let server = TemporalServer::shared();
    let name = server.new_namespace();
    let namespace = Namespace { server, name };
    let played = tokio::time::timeout(LIMIT, case(&namespace)).await;
    played.unwrap_or_else(|_| panic!("it did not end within {LIMIT:?} in namespace {}", namespace.name));
}
