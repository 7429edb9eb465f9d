//! The facts about a run that never change.

use std::sync::Arc;

use dacapo_core::{Name, Pins, from_stored};
use dacapo_store::{Epoch, Parent, RunRow};
use dacapo_worker::RunName;

/// The facts about a run that never change.
#[derive(Clone, Debug)]
pub(crate) struct RunInfo {
    pub(crate) name: Arc<RunName>,
    /// The first run of its chain, by which the chain is known.
    pub(crate) first_run_id: Name,
    pub(crate) parent: Option<Parent>,
    pub(crate) pins: Pins,
    pub(crate) epoch: Epoch,
}

impl RunInfo {
    /// Reads it from a run's row. The error says what cannot be read.
    pub(crate) fn of(row: &RunRow) -> Result<Self, String> {
        let pins = from_stored(&row.pins).map_err(|error| format!("its pins cannot be read: {error}"))?;
        let name = RunName {
            run_id: row.run_id.clone(),
            workflow_id: row.workflow_id.clone(),
            workflow: row.workflow.clone(),
            queue: row.queue.clone(),
        };
        Ok(Self {
            name: Arc::new(name),
            first_run_id: row.first_run_id.clone(),
            parent: row.parent.clone(),
            pins,
            epoch: row.epoch,
        })
    }
}
