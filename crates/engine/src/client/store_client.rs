//! A client that reads a store, beside the process that serves it.

use std::path::PathBuf;

use dacapo_client::{
    Answer, Capabilities, Client, CompleteActivity, Cursor, Description, Error, Feature, Filter, HistoryEvent, Page,
    Problem, Progress, QueryRun, RawHistory, Result, RunRef, RunResult, SendSignal, SendUpdate, StartRun, Started,
    StuckRuns, UpdateState,
};
use dacapo_core::{Failure, Payload};

use crate::EngineError;
use crate::host::blocking::blocking;
use crate::read::Reader;

/// A client that reads a store and serves nothing. Calls that change something are refused with [`Error::ReadOnly`].
#[derive(Clone)]
pub struct StoreClient {
    reader: Reader,
    capabilities: Capabilities,
}

impl StoreClient {
    /// A client over this reader of a backend.
    pub fn new(reader: Reader, backend: &str) -> Self {
        let features = [Feature::StuckRuns, Feature::Verification, Feature::Backup, Feature::Archive];
        Self { reader, capabilities: Capabilities::new(format!("{backend}, read-only"), features) }
    }

    /// Reads the store: on a thread of the async runtime that may block, or here if this thread may.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, EngineError> + Send + 'static,
    ) -> Answer<T> {
        let reader = self.reader.clone();
        Box::pin(async move { Ok(blocking(move || read(&reader)).await??) })
    }
}

fn read_only<T: Send + 'static>() -> Answer<T> {
    Box::pin(std::future::ready(Err(Error::ReadOnly)))
}

impl Client for StoreClient {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn start(&self, _: StartRun) -> Answer<Started> {
        read_only()
    }

    fn signal(&self, _: RunRef, _: SendSignal) -> Answer<()> {
        read_only()
    }

    fn query(&self, _: RunRef, _: QueryRun) -> Answer<Payload> {
        read_only()
    }

    fn update(&self, _: RunRef, _: SendUpdate) -> Answer<UpdateState> {
        read_only()
    }

    fn cancel(&self, _: RunRef, _: String) -> Answer<()> {
        read_only()
    }

    fn terminate(&self, _: RunRef, _: String) -> Answer<()> {
        read_only()
    }

    fn reset(&self, _: RunRef, _: u64, _: String) -> Answer<Started> {
        read_only()
    }

    /// The result of a run that is closed. A reader is not told when a run closes, so it does not wait.
    fn result(&self, run: RunRef) -> Answer<RunResult> {
        self.read(move |reader| reader.closed_result(&run.into()))
    }

    fn describe(&self, run: RunRef) -> Answer<Description> {
        self.read(move |reader| Ok(reader.describe(&run.into())?.into()))
    }

    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Answer<Page> {
        self.read(move |reader| reader.page(filter, after, limit))
    }

    fn count(&self, filter: Filter) -> Answer<u64> {
        self.read(move |reader| reader.count(&filter))
    }

    fn history(&self, run: RunRef) -> Answer<Vec<HistoryEvent>> {
        self.read(move |reader| reader.events(&run.into()))
    }

    fn raw_history(&self, run: RunRef) -> Answer<RawHistory> {
        self.read(move |reader| reader.raw_history(&run.into()))
    }

    fn complete(&self, _: String, _: Result<Payload, Failure>) -> Answer<()> {
        read_only()
    }

    fn heartbeat(&self, _: String, _: Payload) -> Answer<Option<String>> {
        read_only()
    }

    fn complete_activity(&self, _: RunRef, _: CompleteActivity) -> Answer<()> {
        read_only()
    }

    fn stuck_runs(&self) -> Answer<Vec<StuckRuns>> {
        self.read(Reader::stuck_runs)
    }

    fn verify(&self, mut progress: Progress) -> Answer<Vec<Problem>> {
        self.read(move |reader| reader.verify(&mut progress))
    }

    fn back_up(&self, to: PathBuf) -> Answer<()> {
        self.read(move |reader| reader.back_up(&to))
    }
}
