//! Looking at runs, without their code and without disturbing them.

use std::io::Write;
use std::path::Path;

use dacapo_core::Transcript;
use dacapo_engine::{Description, EngineError, Problem, Reader, RunId, StuckCause};
use dacapo_store::RunNo;

use crate::client::blocking::blocking;
use crate::client::{Filter, IntoName, Result, archive};

/// The runs of a store, to look at. Works beside the process that serves them.
#[derive(Clone)]
pub struct Runs {
    reader: Reader,
}

/// Some runs, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The runs.
    pub runs: Vec<Description>,
    /// Where the next page begins, if there is one.
    pub next: Option<RunNo>,
}

impl Runs {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader }
    }

    /// The first page of the runs that match, newest first.
    pub async fn list(&self, filter: &Filter, limit: usize) -> Result<Page> {
        self.page(filter, None, limit).await
    }

    /// The page after one that said where the next begins.
    pub async fn list_from(&self, filter: &Filter, next: RunNo, limit: usize) -> Result<Page> {
        self.page(filter, Some(next), limit).await
    }

    async fn page(&self, filter: &Filter, before: Option<RunNo>, limit: usize) -> Result<Page> {
        if limit == 0 {
            return Err(EngineError::BadInput("a page of 0 runs never ends: ask for 1 or more".to_owned()).into());
        }
        let filter = filter.0.clone();
        let runs = self.read(move |reader| reader.list(&filter, before, limit)).await?;
        let next = runs.last().filter(|_| runs.len() == limit).map(|last| last.run);
        Ok(Page { runs, next })
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> std::result::Result<T, EngineError> + Send + 'static,
    ) -> Result<T> {
        let reader = self.reader.clone();
        Ok(blocking(move || read(&reader)).await??)
    }

    /// Writes the histories of all runs that match, as a file that [`App::import`](crate::App::import) takes, into any
    /// store. Gives their number, and the writer, flushed. Runs that are deleted meanwhile are left out. A file should be
    /// written through a [`BufWriter`](std::io::BufWriter).
    pub async fn export<W: Write + Send + 'static>(&self, filter: &Filter, mut to: W) -> Result<(u64, W)> {
        let (reader, filter) = (self.reader.clone(), filter.0.clone());
        blocking(move || Ok((archive::export(&reader, &filter, &mut to)?, to))).await?
    }

    /// The same into a file that is not there yet and that only its owner may read (mode 0600 on Unix). Gives the number of runs
    /// once the file is flushed. If that fails, there is no file.
    pub async fn export_to_file(&self, filter: &Filter, to: impl AsRef<Path>) -> Result<u64> {
        let (reader, filter, to) = (self.reader.clone(), filter.0.clone(), to.as_ref().to_owned());
        blocking(move || archive::export_to_file(&reader, &filter, &to)).await?
    }

    /// Copies everything, as it stands at one moment, into a file that is not there yet. The store is served meanwhile.
    pub async fn back_up(&self, to: impl AsRef<Path>) -> Result<()> {
        let to = to.as_ref().to_owned();
        self.read(move |reader| reader.back_up(&to)).await
    }

    /// Looks at everything: whether the store is sound, and whether each run has the turns it says it has, all of them
    /// readable, and the result that its last turn decided. `progress` is told now and then how many runs were looked at.
    pub async fn verify(&self, mut progress: impl FnMut(u64) + Send + 'static) -> Result<Vec<Problem>> {
        self.read(move |reader| reader.verify(&mut progress)).await
    }

    /// The causes for which runs are stuck, those of most runs first: a bad deploy that leaves a thousand runs stuck is one.
    pub async fn stuck_causes(&self) -> Result<Vec<StuckCause>> {
        self.read(Reader::stuck_causes).await
    }

    /// How many runs match.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        let filter = filter.0.clone();
        self.read(move |reader| reader.count(&filter)).await
    }

    /// How the open run of this workflow id stands, or the last.
    pub async fn describe(&self, workflow_id: impl IntoName) -> Result<Description> {
        let run = RunId::of(workflow_id.into_name());
        self.read(move |reader| reader.describe(&run)).await
    }

    /// All turns of the open run of this workflow id, or of the last.
    pub async fn history(&self, workflow_id: impl IntoName) -> Result<Transcript> {
        let run = RunId::of(workflow_id.into_name());
        self.read(move |reader| reader.history(&run)).await
    }
}
