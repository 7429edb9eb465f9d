//! The calls of a program to a cluster: [`ClusterClient`] is a [`Client`] over the server's own interface.
//!
//! ```text
//!   verb ──▶ start.rs, send.rs, … (to a request) ──▶ rpc.rs (sends it, tries again) ──▶ server
//!                                                      └── refusals.rs (what a refusal means here)
//! ```

mod activity;
mod describe;
mod end;
mod events;
mod history;
mod info;
mod list;
mod promise;
mod query;
mod refusals;
mod reset;
mod result;
mod rpc;
mod search;
mod send;
mod start;
mod stuck;
mod update;

use dacapo_client::{
    Capabilities, Client, ClientFuture, CompleteActivity, Count, Cursor, Description, Feature, Filter, GroupBy,
    HistoryPage, Page, PollUpdate, QueryRun, RawHistory, ResolvePromise, Result, RunRef, RunResult, SendSignal,
    SendUpdate, StartRun, Started, UpdateState,
};
use dacapo_core::{Failure, Inspection, Name, Payload};

use crate::connect::Cluster;
use crate::proto::history::History;
use rpc::{Rpc, on_runtime};

/// The name of this backend in errors.
const BACKEND: &str = "temporal";

/// A client of a cluster.
pub struct ClusterClient {
    rpc: Rpc,
    capabilities: Capabilities,
}

impl ClusterClient {
    /// Creates a client over a connection.
    pub fn new(cluster: &Cluster) -> Self {
        Self { rpc: Rpc::new(cluster), capabilities: capabilities() }
    }

    /// Returns some open runs of a queue, after the page that returned this cursor.
    pub(crate) async fn open_runs(&self, queue: &Name, after: Option<Cursor>, limit: usize) -> Result<Page> {
        list::open_runs(&self.rpc, queue, after, limit).await
    }

    /// Returns all events of a run.
    pub(crate) async fn fetch(&self, run: &RunRef) -> Result<History> {
        history::whole(&self.rpc, run).await
    }

    /// Makes a call on the runtime of the connection, wherever its answer is awaited.
    fn call<T, F>(&self, call: impl FnOnce(Rpc) -> F) -> ClientFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        on_runtime(self.rpc.runtime().clone(), call(self.rpc.clone()))
    }
}

/// Returns the name of this backend and what it can do.
pub fn capabilities() -> Capabilities {
    use Feature::{Cron, Deletion, Inspection, Nexus, Promises, Queries, ResultOrStuck, SideEffects, Writing};
    let features = [Writing, Queries, Promises, SideEffects, Inspection, ResultOrStuck, Deletion, Nexus, Cron];
    Capabilities::new(BACKEND, features)
}

impl Client for ClusterClient {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn start(&self, start: StartRun) -> ClientFuture<Started> {
        let checked = start.pins.as_ref().map_or(Ok(()), |pins| self.capabilities.check_pins(pins));
        self.call(|rpc| async move {
            checked?;
            start::start(&rpc, start).await
        })
    }

    fn signal(&self, run: RunRef, signal: SendSignal) -> ClientFuture<()> {
        self.call(|rpc| async move { send::signal(&rpc, &run, signal).await })
    }

    fn query(&self, run: RunRef, query: QueryRun) -> ClientFuture<Payload> {
        self.call(|rpc| async move { query::query(&rpc, &run, query).await })
    }

    fn update(&self, run: RunRef, update: SendUpdate) -> ClientFuture<UpdateState> {
        self.call(|rpc| async move { update::update(&rpc, &run, update).await })
    }

    fn update_result(&self, run: RunRef, update: PollUpdate) -> ClientFuture<UpdateState> {
        self.call(|rpc| async move { update::poll(&rpc, &run, update).await })
    }

    fn cancel(&self, run: RunRef, reason: String) -> ClientFuture<()> {
        self.call(|rpc| async move { send::cancel(&rpc, &run, reason).await })
    }

    fn terminate(&self, run: RunRef, reason: String) -> ClientFuture<()> {
        self.call(|rpc| async move { send::terminate(&rpc, &run, reason).await })
    }

    fn reset(&self, run: RunRef, turn: u64, reason: String) -> ClientFuture<Started> {
        self.call(|rpc| async move { reset::reset(&rpc, &run, turn, reason).await })
    }

    fn result(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.call(|rpc| async move { result::result(&rpc, &run).await })
    }

    fn result_or_stuck(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.call(|rpc| async move { result::result_or_stuck(&rpc, &run).await })
    }

    fn describe(&self, run: RunRef) -> ClientFuture<Description> {
        self.call(|rpc| async move { describe::describe(&rpc, &run).await })
    }

    fn published(&self, run: RunRef) -> ClientFuture<Option<Payload>> {
        self.call(|rpc| async move { query::published(&rpc, &run).await })
    }

    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> ClientFuture<Page> {
        let lacks = self.capabilities.lacks(Feature::StuckRuns);
        self.call(move |rpc| async move { list::list(&rpc, &filter, after, limit, lacks).await })
    }

    fn count(&self, filter: Filter) -> ClientFuture<u64> {
        let lacks = self.capabilities.lacks(Feature::StuckRuns);
        self.call(move |rpc| async move { list::count(&rpc, &filter, lacks).await })
    }

    fn counts(&self, filter: Filter, by: Option<GroupBy>) -> ClientFuture<Vec<Count>> {
        let lacks = self.capabilities.lacks(Feature::StuckRuns);
        self.call(move |rpc| async move { list::counts(&rpc, &filter, by, lacks).await })
    }

    fn history(&self, run: RunRef, after: Option<Cursor>, limit: usize) -> ClientFuture<HistoryPage> {
        self.call(move |rpc| async move { history::page(&rpc, &run, after, limit).await })
    }

    fn raw_history(&self, run: RunRef) -> ClientFuture<RawHistory> {
        self.call(|rpc| async move { history::raw(&rpc, &run).await })
    }

    fn complete(&self, token: String, result: Result<Payload, Failure>) -> ClientFuture<()> {
        self.call(|rpc| async move { activity::complete(&rpc, &token, result).await })
    }

    fn heartbeat(&self, token: String, details: Payload) -> ClientFuture<Option<String>> {
        self.call(|rpc| async move { activity::heartbeat(&rpc, &token, &details).await })
    }

    fn complete_activity(&self, run: RunRef, completion: CompleteActivity) -> ClientFuture<()> {
        self.call(|rpc| async move { activity::complete_by_id(&rpc, &run, completion).await })
    }

    fn resolve_promise(&self, run: RunRef, resolution: ResolvePromise) -> ClientFuture<()> {
        self.call(|rpc| async move { promise::resolve(&rpc, &run, resolution).await })
    }

    fn inspect(&self, run: RunRef) -> ClientFuture<Inspection> {
        self.call(|rpc| async move { query::inspect(&rpc, &run).await })
    }

    fn delete(&self, run: RunRef) -> ClientFuture<()> {
        self.call(|rpc| async move { send::delete(&rpc, &run).await })
    }
}
