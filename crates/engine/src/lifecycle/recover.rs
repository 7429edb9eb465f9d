//! Opening a store: an engine takes over all that earlier processes left. No run is loaded for that: all that can wake a run
//! is a row of messages, timers or tasks, or a run that is stuck. Runs with unseen messages are woken.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_store::{Filter, StoreError};

use crate::activity::adopt::{Origins, adopt};
use crate::crash_guard::count::count_crash;
use crate::host::Steady;
use crate::lifecycle::halt::halt;
use crate::lifecycle::retention::begin_retention;
use crate::run::deliver::{poke, with_run};
use crate::shared::Shared;
use crate::timer::fire::refill;

const PAGE: usize = 1_000;

/// Takes over what earlier processes left.
pub(crate) fn recover(shared: &Arc<Shared>) -> Result<(), StoreError> {
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
    // Wake at once for what is due already.
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
        for row in &rows {
            let attempts = row.stuck.as_ref().map_or(1, |stuck| stuck.attempts);
            with_run(shared, row.no, |state| state.failed_plays = attempts);
            poke(shared, row.no);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => before = Some(last.no),
            _ => return Ok(()),
        }
    }
}
