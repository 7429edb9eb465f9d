//! Looking at runs, without their code and without disturbing them.

use std::io::Write;
use std::path::Path;

use dacapo_client::{Count, Cursor, Description, Feature, GroupBy, Page, Problem, RunRef, StuckRuns};
use dacapo_core::Transcript;
use dacapo_engine::blocking;

use crate::client::link::Link;
use crate::client::{Filter, IntoName, Result, archive};

/// The runs of a backend: lists, counts, checks and exports them. Over a store it works beside the process that serves it.
///
/// ```
/// # use dacapo::prelude::*;
/// # async fn example() -> dacapo::Result<()> {
/// let orders = Dacapo::connect("sqlite:orders.db").await?;
/// println!("{} orders are open", orders.runs().count(&Filter::open().workflow("checkout")).await?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Runs {
    link: Link,
}

impl Runs {
    pub(crate) fn new(link: Link) -> Self {
        Self { link }
    }

    /// Lists the first page of the runs that match, newest first unless the filter's search has another order.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App, midnight: Timestamp) -> dacapo::Result<()> {
    /// let runs = app.runs();
    /// let today = Filter::all().workflow("checkout").status(Status::Failed).started_from(midnight);
    /// let mut page = runs.list(&today, 100).await?;
    /// loop {
    ///     for run in &page.runs {
    ///         println!("{} {:?}", run.workflow_id, run.result);
    ///     }
    ///     let Some(next) = page.next else { break };
    ///     page = runs.list_from(&today, next, 100).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, filter: &Filter, limit: usize) -> Result<Page> {
        Ok(self.link.client().list(filter.0.clone(), None, limit).await?)
    }

    /// Lists the page after the one that ended at this cursor. See [`list`](Self::list).
    pub async fn list_from(&self, filter: &Filter, after: Cursor, limit: usize) -> Result<Page> {
        Ok(self.link.client().list(filter.0.clone(), Some(after), limit).await?)
    }

    /// Counts the runs that match: all of them, however long that takes. See [`Runs`] for an example.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        Ok(self.link.client().count(filter.0.clone()).await?)
    }

    /// Counts the runs that match, together or in groups, and stops at 10,000 in each group. Groups without runs are left out.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo::GroupBy;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// for count in app.runs().counts(&Filter::all().workflow("checkout"), Some(GroupBy::Status)).await? {
    ///     println!("{}: {count}", count.group.as_deref().unwrap_or_default()); // completed: 10,000+
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn counts(&self, filter: &Filter, by: Option<GroupBy>) -> Result<Vec<Count>> {
        Ok(self.link.client().counts(filter.0.clone(), by).await?)
    }

    /// Describes the open run of this workflow id, or the last.
    pub async fn describe(&self, workflow_id: impl IntoName) -> Result<Description> {
        Ok(self.link.client().describe(RunRef::latest(workflow_id.into_name())).await?)
    }

    /// Returns the record, turn by turn, of the open run of this workflow id, or of the last: for a test that replays it with new code.
    pub async fn transcript(&self, workflow_id: impl IntoName) -> Result<Transcript> {
        let run = RunRef::latest(workflow_id.into_name());
        self.link.transcript(self.link.client().raw_history(run).await?).await
    }

    /// Groups stuck runs by their cause, the largest group first: a bad deploy that makes a thousand runs stuck is one group.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// for group in app.runs().stuck_runs().await? {
    ///     let reason = group.example.stuck.map(|stuck| stuck.reason).unwrap_or_default();
    ///     println!("{} runs, such as {}: {reason}", group.runs, group.example.workflow_id);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn stuck_runs(&self) -> Result<Vec<StuckRuns>> {
        Ok(self.link.client().stuck_runs().await?)
    }

    /// Checks all stored data: whether the store is sound, and whether each run has the turns it claims to have, all of them
    /// readable, and the result that its last turn decided. `progress` receives how many runs were checked so far.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// for problem in app.runs().verify(|runs| eprintln!("{runs} runs checked")).await? {
    ///     eprintln!("{problem}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn verify(&self, progress: impl FnMut(u64) + Send + 'static) -> Result<Vec<Problem>> {
        Ok(self.link.client().verify(Box::new(progress)).await?)
    }

    /// Copies everything, as of one moment, into a file that is not there yet. The store is served meanwhile.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// app.runs().back_up("/backups/orders-2026-11-18.db").await?;
    /// # Ok(()) }
    /// ```
    pub async fn back_up(&self, to: impl AsRef<Path>) -> Result<()> {
        Ok(self.link.client().back_up(to.as_ref().to_owned()).await?)
    }

    /// Writes the histories of all runs that match, as a file that [`App::import`](crate::App::import) reads, into any
    /// store. Returns their number, and the writer, flushed. Runs that are deleted meanwhile are left out. A file should be
    /// written through a [`BufWriter`](std::io::BufWriter).
    pub async fn export<W: Write + Send + 'static>(&self, filter: &Filter, mut to: W) -> Result<(u64, W)> {
        let (reader, filter) = (self.link.reader(Feature::Archive)?, filter.0.clone());
        blocking(move || Ok((archive::export(&reader, &filter, &mut to)?, to))).await?
    }

    /// Writes the histories of all runs that match into a new file, which only its owner may read (mode 0600 on Unix).
    ///
    /// Returns the number of runs once the file is flushed. If that fails, there is no file. [`App::import`](crate::App::import)
    /// reads such a file.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App, first_of_january: Timestamp) -> dacapo::Result<()> {
    /// let closed = Filter::all().status(Status::Completed).started_before(first_of_january);
    /// let runs = app.runs().export_to_file(&closed, "orders-2025.jsonl").await?;
    /// println!("{runs} orders exported");
    /// # Ok(()) }
    /// ```
    pub async fn export_to_file(&self, filter: &Filter, to: impl AsRef<Path>) -> Result<u64> {
        let (reader, filter) = (self.link.reader(Feature::Archive)?, filter.0.clone());
        let to = to.as_ref().to_owned();
        blocking(move || archive::export_to_file(&reader, &filter, &to)).await?
    }
}
