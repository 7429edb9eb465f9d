//! Cancelling an activity that another node works at, or that no node has taken yet.

use std::sync::Arc;

use dacapo_core::{Failure, FailureKind, RetryState, Seq};
use dacapo_store::{Notice, Recipient, RunNo, StoreError};

use crate::activity::adopt::{Origins, read_task};
use crate::activity::end::resolve;
use crate::activity::task::UNWANTED;
use crate::host::WorkKind;
use crate::shared::Shared;

/// Cancels an activity of an owned run that another node works at, or that no node has taken yet. `waits` says whether the
/// workflow waits for its outcome.
pub(crate) fn cancel_task(shared: &Arc<Shared>, run: RunNo, seq: Seq, waits: bool) {
    if shared.nodes().is_none() {
        return;
    }
    shared.later(WorkKind::Read, Some(run), move |shared| {
        if let Err(error) = cancel_stored(shared, run, seq, waits) {
            tracing::error!(%run, %error, "an activity of another node cannot be cancelled");
        }
    });
}

fn cancel_stored(shared: &Arc<Shared>, run: RunNo, seq: Seq, waits: bool) -> Result<(), StoreError> {
    let Some(row) = shared.store().tasks_of(run)?.into_iter().find(|row| row.seq == seq) else { return Ok(()) };
    match (row.node, shared.nodes()) {
        (Some(node), Some(nodes)) if node != nodes.node() => {
            nodes.notify(Recipient::Node(node), Notice::Cancelled(run, seq));
        }
        (None, _) if waits => {
            if let Some(task) = read_task(shared, &row, &mut Origins::default())? {
                let failure = Failure::new(FailureKind::Cancelled, UNWANTED);
                resolve(shared, run, &task, Err(failure), RetryState::CancelRequested);
            }
        }
        _ => {}
    }
    Ok(())
}
