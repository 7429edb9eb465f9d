//! Looking at runs, without their code and without disturbing them.

use dacapo_core::Transcript;
use dacapo_engine::{Description, EngineError, Reader, RunId};
use dacapo_store::RunNo;

use crate::client::{Filter, IntoName, Result};

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
