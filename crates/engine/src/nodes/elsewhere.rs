//! Runs that another node plays: what happens here for them goes to the store, and their owner is told.

use std::sync::Arc;

use dacapo_core::{Failure, FailureKind, RetryState, Seq};
use dacapo_store::{News, Recipient, RunNo, StoreError};

use crate::activity::adopt::{Origins, read_task};
use crate::activity::cancel::UNWANTED;
use crate::activity::end::resolve;
use crate::host::WorkKind;
use crate::run::deliver::store_results;
use crate::run::message::Message;
use crate::shared::Shared;

/// Delivers to a run that another node plays.
pub(crate) fn deliver(shared: &Arc<Shared>, run: RunNo, message: Message) {
    match message {
        Message::Stored { .. } => shared.tell_owner(run, News::Stored(run)),
        Message::Result { .. } => {
            // Until the result is stored, it is in no inbox and in no row: a shutdown must not end before.
            shared.shutdown.begin_write();
            shared.later(WorkKind::Write, Some(run), move |shared| {
                store_results(shared, run, vec![message]);
                shared.end_write();
            });
        }
        // The owner has the timer too, and does the local work again.
        Message::Timer { .. } | Message::Local { .. } => {}
    }
}

/// Tells the nodes whose callers wait for a run that it has closed or is stuck.
pub(crate) fn tell_watchers(shared: &Shared, run: RunNo) {
    let Some(nodes) = shared.nodes() else { return };
    for node in shared.watchers.take(run) {
        nodes.tell(Recipient::Node(node), News::Changed(run));
    }
}

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
    match (row.holder, shared.nodes()) {
        (Some(node), Some(nodes)) if node != nodes.node() => {
            nodes.tell(Recipient::Node(node), News::Cancelled(run, seq));
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
