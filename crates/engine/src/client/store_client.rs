//! A client that reads a store, beside the process that serves it.

use std::path::PathBuf;

use dacapo_client::{
    Capabilities, Client, ClientFuture, CompleteActivity, Count, Cursor, Description, Error, Feature, Filter, GroupBy,
    HistoryPage, Page, PollUpdate, Problem, Progress, QueryRun, RawHistory, ResolvePromise, Result, RunRef, RunResult,
    SendSignal, SendUpdate, StartRun, Started, StuckRuns, UpdateState,
};
use dacapo_core::{Failure, Payload};
use dacapo_store::RunRow;

use crate::host::blocking::blocking;
use crate::read::Reader;

/// A client that reads a store and serves nothing. It lacks [`Feature::Writing`].
#[derive(Clone)]
pub struct StoreClient {
    reader: Reader,
    capabilities: Capabilities,
}

impl StoreClient {
    /// A client over this reader of a backend.
    pub fn new(reader: Reader, backend: &str) -> Self {
        let mut capabilities = Capabilities::new(
            format!("{backend}, read-only"),
            [Feature::StuckRuns, Feature::ResultOrStuck, Feature::Verification, Feature::Backup, Feature::Archive],
        );
        if !reader.has_backup() {
            capabilities.features.remove(&Feature::Backup);
        }
        Self { reader, capabilities }
    }

    /// Refuses a call that changes something.
    fn refused<T: Send + 'static>(&self) -> ClientFuture<T> {
        self.lacks(Feature::Writing)
    }

    /// Refuses a call that needs this feature.
    fn lacks<T: Send + 'static>(&self, feature: Feature) -> ClientFuture<T> {
        Box::pin(std::future::ready(Err(self.capabilities.lacks(feature))))
    }

    /// Reads the result of a run; of an open run, `open` says what to answer.
    fn closed_result(&self, run: RunRef, open: fn(RunRow) -> Error) -> ClientFuture<RunResult> {
        let read = self.read(move |reader| reader.closed_result(&run.into()));
        Box::pin(async move { read.await?.map_err(open) })
    }

    /// Reads the store: on a thread of the async runtime that may block, or here if this thread may.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, Error> + Send + 'static,
    ) -> ClientFuture<T> {
        let reader = self.reader.clone();
        Box::pin(async move { blocking(move || read(&reader)).await? })
    }
}

fn is_open(run: RunRow) -> Error {
    Error::Refused(format!(
        "the run of workflow id {:?} is open, and a client that only reads cannot wait for its end: ask the process that serves it",
        run.workflow_id
    ))
}

impl Client for StoreClient {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn start(&self, _: StartRun) -> ClientFuture<Started> {
        self.refused()
    }

    fn signal(&self, _: RunRef, _: SendSignal) -> ClientFuture<()> {
        self.refused()
    }

    fn query(&self, _: RunRef, _: QueryRun) -> ClientFuture<Payload> {
        self.lacks(Feature::Queries)
    }

    fn update(&self, _: RunRef, _: SendUpdate) -> ClientFuture<UpdateState> {
        self.refused()
    }

    fn update_result(&self, _: RunRef, _: PollUpdate) -> ClientFuture<UpdateState> {
        self.lacks(Feature::Queries)
    }

    fn cancel(&self, _: RunRef, _: String) -> ClientFuture<()> {
        self.refused()
    }

    fn terminate(&self, _: RunRef, _: String) -> ClientFuture<()> {
        self.refused()
    }

    fn reset(&self, _: RunRef, _: u64, _: String) -> ClientFuture<Started> {
        self.refused()
    }

    /// The result of a run that is closed. A client that only reads is not told when a run closes, so it does not wait.
    fn result(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.closed_result(run, is_open)
    }

    fn result_or_stuck(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.closed_result(run, |run| match run.stuck {
            Some(stuck) => Error::Stuck(stuck.reason),
            None => is_open(run),
        })
    }

    fn describe(&self, run: RunRef) -> ClientFuture<Description> {
        self.read(move |reader| Ok(reader.describe(&run.into())?.into()))
    }

    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> ClientFuture<Page> {
        self.read(move |reader| reader.page(filter, after, limit))
    }

    fn count(&self, filter: Filter) -> ClientFuture<u64> {
        self.read(move |reader| reader.count(&filter))
    }

    fn counts(&self, filter: Filter, by: Option<GroupBy>) -> ClientFuture<Vec<Count>> {
        self.read(move |reader| reader.counts(&filter, by))
    }

    fn history(&self, run: RunRef, after: Option<Cursor>, limit: usize) -> ClientFuture<HistoryPage> {
        self.read(move |reader| reader.events(&run.into(), after, limit))
    }

    fn raw_history(&self, run: RunRef) -> ClientFuture<RawHistory> {
        self.read(move |reader| reader.raw_history(&run.into()))
    }

    fn complete(&self, _: String, _: Result<Payload, Failure>) -> ClientFuture<()> {
        self.refused()
    }

    fn heartbeat(&self, _: String, _: Payload) -> ClientFuture<Option<String>> {
        self.refused()
    }

    fn complete_activity(&self, _: RunRef, _: CompleteActivity) -> ClientFuture<()> {
        self.refused()
    }

    fn resolve_promise(&self, _: RunRef, _: ResolvePromise) -> ClientFuture<()> {
        self.refused()
    }

    fn release(&self, _: RunRef) -> ClientFuture<()> {
        self.refused()
    }

    fn delete(&self, _: RunRef) -> ClientFuture<()> {
        self.refused()
    }

    fn stuck_runs(&self) -> ClientFuture<Vec<StuckRuns>> {
        self.read(Reader::stuck_runs)
    }

    fn verify(&self, mut progress: Progress) -> ClientFuture<Vec<Problem>> {
        self.read(move |reader| reader.verify(&mut progress))
    }

    fn back_up(&self, to: PathBuf) -> ClientFuture<()> {
        match self.capabilities.has(Feature::Backup) {
            true => self.read(move |reader| reader.back_up(&to)),
            false => self.lacks(Feature::Backup),
        }
    }
}
