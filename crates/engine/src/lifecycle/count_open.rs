//! Counting the open runs of a store in the background: once when it is opened, and where several nodes share it, again when
//! shards move and from time to time.

use std::sync::Arc;

use dacapo_store::Shards;

use crate::host::WorkKind;
use crate::shared::Shared;

/// The most runs that are read at once: other readers wait no longer than for that.
const PAGE: usize = 1_000;

/// Counts the open runs of shards that this process owns from now on.
pub(crate) fn count_open(shared: &Arc<Shared>, shards: &Shards) {
    let begins = shared.run_meters.open().want(shards, shared.host.steady_now());
    read_later(shared, begins);
}

/// Counts all open runs of this process again, if the last time is long enough ago: other nodes have started and closed some.
pub(crate) fn count_open_again(shared: &Arc<Shared>) {
    let begins = shared.run_meters.open().want_again(shared.host.steady_now());
    read_later(shared, begins);
}

fn read_later(shared: &Arc<Shared>, is_wanted: bool) {
    if is_wanted {
        shared.later(WorkKind::Read, None, read_page);
    }
}

fn read_page(shared: &Arc<Shared>) {
    let Some(after) = shared.run_meters.open().next_page().filter(|_| !shared.halted.is_halted()) else { return };
    match shared.store().open_runs(after, PAGE) {
        Ok(rows) => {
            let is_last = rows.len() < PAGE;
            if shared.run_meters.open().page_read(rows, is_last) {
                count_page(shared);
            }
        }
        Err(error) => {
            tracing::warn!(%error, "open runs cannot be counted");
            shared.run_meters.open().give_up();
        }
    }
}

/// Counts the page that was read last, after the writes that it had to wait for, and goes on with the next.
pub(crate) fn count_page(shared: &Arc<Shared>) {
    let goes_on = shared.run_meters.open().count_page(shared.host.steady_now());
    read_later(shared, goes_on);
}
