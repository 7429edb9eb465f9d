//! Which runs to list.

use dacapo_client::Status;
use dacapo_core::Timestamp;

use crate::client::IntoName;

/// Which runs. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(pub(crate) dacapo_client::Filter);

impl Filter {
    /// All runs.
    pub fn all() -> Self {
        Self::default()
    }

    /// Runs that are open.
    pub fn open() -> Self {
        Self::all().status(Status::Open)
    }

    /// Runs that are open and cannot go on.
    pub fn stuck() -> Self {
        Self(dacapo_client::Filter::stuck())
    }

    /// Only runs that stand so.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Only runs of this workflow.
    #[must_use]
    pub fn workflow(mut self, workflow: impl IntoName) -> Self {
        self.0.workflow = Some(workflow.into_name());
        self
    }

    /// Only runs of this workflow id.
    #[must_use]
    pub fn workflow_id(mut self, workflow_id: impl IntoName) -> Self {
        self.0.workflow_id = Some(workflow_id.into_name());
        self
    }

    /// Only runs that were started at this moment or later.
    #[must_use]
    pub fn started_from(mut self, from: Timestamp) -> Self {
        self.0.started_from = Some(from);
        self
    }

    /// Only runs that were started before this moment.
    #[must_use]
    pub fn started_before(mut self, before: Timestamp) -> Self {
        self.0.started_before = Some(before);
        self
    }
}
