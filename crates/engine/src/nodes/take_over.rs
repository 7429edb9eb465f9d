//! Taking over shards: what can wake one of their runs is read, as when a store is opened.

use std::sync::Arc;

use dacapo_store::{RunRow, Shards, SharedStore, StoreError};

use crate::activity::adopt::{Origins, adopt};
use crate::crash_guard::count::wake_with_crash_count;
use crate::host::{Steady, WorkKind};
use crate::lifecycle::count_open::count_open;
use crate::lifecycle::halt::halt;
use crate::nodes::claim::claim;
use crate::nodes::notices::stored;
use crate::run::deliver::poke_after;
use crate::shared::Shared;
use crate::timer::fire::refill;

const PAGE: usize = 1_000;

/// Takes over shards that this node owns from now on.
pub(crate) fn gained(shared: &Arc<Shared>, shards: Shards) {
    shared.later(WorkKind::Read, None, move |shared| {
        let Some(nodes) = shared.nodes() else { return };
        if let Err(error) = take_over(shared, nodes, &shards) {
            return halt(shared, error.into());
        }
        // Wake at once for what is due already.
        shared.host.wake_at(Steady::default());
        claim(shared);
        count_open(shared, &shards);
    });
}

fn take_over(shared: &Arc<Shared>, nodes: &dyn SharedStore, shards: &Shards) -> Result<(), StoreError> {
    refill(shared, None);
    let queues: Vec<_> = shared.options.queues.keys().cloned().collect();
    let (mut above, mut origins) = (0, Origins::default());
    loop {
        let rows = nodes.tasks_in(shards, &queues, above, PAGE)?;
        rows.iter().try_for_each(|row| adopt(shared, row, &mut origins))?;
        match rows.last() {
            Some(last) if rows.len() == PAGE => above = last.no.0,
            _ => break,
        }
    }
    nodes.unseen_in(shards)?.into_iter().for_each(|run| stored(shared, run));
    nodes.stuck_in(shards)?.iter().for_each(|row| poke_stuck(shared, row));
    wake_with_crash_count(shared, shards)
}

/// Plays a run again that an earlier process left stuck.
pub(crate) fn poke_stuck(shared: &Arc<Shared>, row: &RunRow) {
    if shared.owns(row.no) {
        let attempts = row.stuck.as_ref().map_or(1, |stuck| stuck.attempts);
        poke_after(shared, row.no, |state| {
            // One whose code is in memory has gone on since its row was read.
            if state.playable.is_none() {
                state.failed_plays = attempts;
            }
        });
    }
}
