//! Which runs to list.

use dacapo_client::{Error, SearchError, Status};
use dacapo_core::Timestamp;

use crate::client::{IntoName, Result};

/// A filter of runs: everything that is set must hold.
///
/// ```
/// # use dacapo::prelude::*;
/// # async fn example(app: App, midnight: Timestamp) -> dacapo::Result<()> {
/// let failed = Filter::all().workflow("checkout").status(Status::Failed).started_from(midnight);
/// println!("{} orders failed today", app.runs().count(&failed).await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(pub(crate) dacapo_client::Filter);

impl Filter {
    /// Returns the filter that matches all runs.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns the filter that matches open runs.
    pub fn open() -> Self {
        Self::all().status(Status::Open)
    }

    /// Returns the filter that matches open runs that are stuck.
    pub fn stuck() -> Self {
        Self(dacapo_client::Filter::stuck())
    }

    /// Matches only runs with this status.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Matches only runs of this workflow.
    #[must_use]
    pub fn workflow(mut self, workflow: impl IntoName) -> Self {
        self.0.workflow = Some(workflow.into_name());
        self
    }

    /// Matches only runs of this workflow id.
    #[must_use]
    pub fn workflow_id(mut self, workflow_id: impl IntoName) -> Self {
        self.0.workflow_id = Some(workflow_id.into_name());
        self
    }

    /// Matches only runs that were started at this moment or later.
    #[must_use]
    pub fn started_from(mut self, from: Timestamp) -> Self {
        self.0.started_from = Some(from);
        self
    }

    /// Matches only runs that were started before this moment.
    #[must_use]
    pub fn started_before(mut self, before: Timestamp) -> Self {
        self.0.started_before = Some(before);
        self
    }

    /// Matches only runs that this search finds: a condition and an order in a subset of Temporal's list filter, which
    /// `docs/search.md` describes.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let mine = Filter::open().search("customer = 'ada' AND total > 100 ORDER BY StartTime")?;
    /// for run in app.runs().list(&mine, 20).await?.runs {
    ///     println!("{} since {}", run.workflow_id, run.started);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The text is no search; the error points at the column.
    pub fn search(mut self, text: &str) -> Result<Self> {
        self.0.search = Some(text.parse().map_err(|error: SearchError| Error::InvalidArgument(error.to_string()))?);
        Ok(self)
    }
}
