//! Opening a store: an engine takes over all that earlier processes left. No run is loaded for that: all that can wake a run
//! is a row of messages, timers or tasks, or a run that is stuck. Runs with unseen messages are woken.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_store::{Filter, Shard, Shards, SharedStore, StoreError};

use crate::activity::adopt::{Origins, adopt};
use crate::crash_guard::count::count_crash;
use crate::host::Steady;
use crate::lifecycle::count_open::count_open;
use crate::lifecycle::halt::halt;
use crate::lifecycle::retention::begin_retention;
use crate::nodes::events::EngineEvents;
use crate::nodes::notices::follow_clock;
use crate::nodes::take_over;
use crate::run::deliver::poke;
use crate::shared::Shared;
use crate::timer::fire::refill;

const PAGE: usize = 1_000;

/// Takes over what earlier processes left.
pub(crate) fn recover(shared: &Arc<Shared>) -> Result<(), StoreError> {
    if let Some(nodes) = shared.nodes() {
        return join(shared, nodes);
    }
    if !count_crash(shared)? {
        // The process is dying at this moment, and nothing follows any more.
        halt(shared, Error::ShutDown);
        return Ok(());
    }
    refill(shared, None);
    adopt_tasks(shared)?;
    for run in shared.store().with_unseen_messages(usize::MAX >> 1)? {
        poke(shared, run);
    }
    poke_stuck(shared)?;
    if let Some(run) = shared.probation.current() {
        poke(shared, run);
    }
    begin_retention(shared)?;
    count_open(shared, &Shards::from_iter([Shard(0)]));
    // Wake at once for what is due already.
    shared.host.wake_at(Steady::default());
    Ok(())
}

/// Becomes a node of a store that several share. What it takes over it takes over shard by shard.
fn join(shared: &Arc<Shared>, nodes: &dyn SharedStore) -> Result<(), StoreError> {
    follow_clock(shared, nodes);
    let queues: Vec<_> = shared.options.queues.keys().cloned().collect();
    nodes.join(&queues, &shared.options.build, Arc::new(EngineEvents(Arc::downgrade(shared))))?;
    begin_retention(shared)?;
    shared.host.wake_at(Steady::default());
    Ok(())
}

fn adopt_tasks(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let queues: Vec<_> = shared.options.queues.keys().cloned().collect();
    let (mut above, mut origins) = (0, Origins::default());
    loop {
        let rows = shared.store().tasks(&queues, above, PAGE)?;
        rows.iter().try_for_each(|row| adopt(shared, row, &mut origins))?;
        match rows.last() {
            Some(last) if rows.len() == PAGE => above = last.no.0,
            _ => return Ok(()),
        }
    }
}

fn poke_stuck(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let stuck = Filter { stuck: true, ..Filter::default() };
    let mut before = None;
    loop {
        let rows = shared.store().list(&stuck, before, PAGE)?;
        rows.iter().for_each(|row| take_over::poke_stuck(shared, row));
        match rows.last() {
            Some(last) if rows.len() == PAGE => before = Some(last.no.into()),
            _ => return Ok(()),
        }
    }
}
