//! Which runs to list.

use dacapo_client::Status;
use dacapo_core::Timestamp;

use crate::client::IntoName;

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
}
