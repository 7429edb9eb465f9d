//! Looking at runs, without their code and without disturbing them.

use std::io::Write;
use std::path::Path;

use dacapo_core::Transcript;
use dacapo_engine::{Description, EngineError, Flaw, Reader, RunId, StuckCause};
use dacapo_store::RunNo;

use crate::client::{Error, Filter, IntoName, Result, archive};

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

/// How many runs are read at a time.
const PAGE: usize = 500;

/// Does this on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::System(error.to_string()))
}

impl Runs {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader }
    }

    /// The first page of the runs that match, newest first.
    pub async fn list(&self, filter: &Filter, limit: usize) -> Result<Page> {
        self.page(filter, None, limit)
    }

    /// The page after one that said where the next begins.
    pub async fn list_from(&self, filter: &Filter, next: RunNo, limit: usize) -> Result<Page> {
        self.page(filter, Some(next), limit)
    }

    fn page(&self, filter: &Filter, before: Option<RunNo>, limit: usize) -> Result<Page> {
        if limit == 0 {
            return Err(EngineError::BadInput("a page of 0 runs never ends: ask for 1 or more".to_owned()).into());
        }
        let runs = self.reader.list(&filter.0, before, limit)?;
        let next = runs.last().filter(|_| runs.len() == limit).map(|last| last.run);
        Ok(Page { runs, next })
    }

    /// Writes the histories of all runs that match, as a file that [`App::import`](crate::App::import) takes, into any
    /// store. Gives their number.
    pub async fn export(&self, filter: &Filter, to: &mut (dyn Write + Send)) -> Result<u64> {
        archive::begin(to)?;
        let (mut before, mut written) = (None, 0);
        loop {
            let page = self.page(filter, before, PAGE)?;
            for run in &page.runs {
                let of = RunId { workflow_id: run.workflow_id.clone(), run_id: Some(run.run_id.clone()) };
                archive::export(&self.reader, &of, to)?;
                written += 1;
            }
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok(written),
            }
        }
    }

    /// Copies everything, as it stands at one moment, into a file that is not there yet. The store is served meanwhile.
    pub async fn back_up(&self, to: impl AsRef<Path>) -> Result<()> {
        let (reader, to) = (self.reader.clone(), to.as_ref().to_owned());
        Ok(blocking(move || reader.back_up(&to)).await??)
    }

    /// Looks at everything: whether the store is sound, and whether each run has the turns it says it has, all of them
    /// readable. `progress` is told now and then how many runs were looked at.
    pub async fn verify(&self, mut progress: impl FnMut(u64) + Send + 'static) -> Result<Vec<Flaw>> {
        let reader = self.reader.clone();
        Ok(blocking(move || reader.verify(&mut progress)).await??)
    }

    /// The causes for which runs are stuck, those of most runs first: a bad deploy that parks a thousand runs is one.
    pub async fn stuck_causes(&self) -> Result<Vec<StuckCause>> {
        let reader = self.reader.clone();
        Ok(blocking(move || reader.stuck_causes()).await??)
    }

    /// How many runs match.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        Ok(self.reader.count(&filter.0)?)
    }

    /// How the open run of this workflow id stands, or the last.
    pub async fn describe(&self, workflow_id: impl IntoName) -> Result<Description> {
        Ok(self.reader.describe(&RunId::of(workflow_id.into_name()))?)
    }

    /// All turns of the open run of this workflow id, or of the last.
    pub async fn history(&self, workflow_id: impl IntoName) -> Result<Transcript> {
        Ok(self.reader.history(&RunId::of(workflow_id.into_name()))?)
    }
}
