//! Taking tasks that no node has: of queues that the owner of their run does not serve.

use std::sync::Arc;

use dacapo_core::Name;
use dacapo_store::StoreError;

use crate::activity::adopt::{Origins, adopt};
use crate::activity::dispatch::dispatch;
use crate::shared::Shared;

/// How many tasks wait for each place before more are offered to other nodes.
const BACKLOG: usize = 4;

/// Whether another task of this queue is offered to all nodes, after so many that a turn has made: this node has more than it
/// soon works at, and another node serves the queue too.
pub(crate) fn offers(shared: &Shared, queue: &Name, made: usize) -> bool {
    let Some(nodes) = shared.nodes() else { return false };
    let Some((places, waiting)) = shared.tasks.backlog(queue) else { return false };
    waiting + made >= places.saturating_mul(BACKLOG) && nodes.others_serve(queue)
}

/// Takes tasks for the places that are free. Called on a thread that may block.
pub(crate) fn claim(shared: &Arc<Shared>) {
    if let Err(error) = claim_for_places(shared) {
        tracing::error!(%error, "tasks cannot be taken");
    }
}

fn claim_for_places(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let Some(nodes) = shared.nodes() else { return Ok(()) };
    if shared.halted.is_halted() || shared.shutdown.has_begun() {
        return Ok(());
    }
    let places = shared.tasks.free_places();
    if places.is_empty() {
        return Ok(());
    }
    let rows = nodes.claim(&places)?;
    // A queue whose places are all taken may have more tasks.
    let is_full = places.iter().any(|(queue, free)| rows.iter().filter(|row| row.queue == *queue).count() == *free);
    shared.tasks.set_more(is_full);
    let mut origins = Origins::default();
    rows.iter().try_for_each(|row| adopt(shared, row, &mut origins))?;
    dispatch(shared);
    Ok(())
}
