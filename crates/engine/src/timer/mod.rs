//! Timers: of the store, which survive the process, and of the process alone.

pub(crate) mod end;
pub(crate) mod fire;
pub(crate) mod wheel;

use dacapo_store::{RunNo, StoreError, TimerRow};

use crate::shared::Shared;

/// Notes timers that were stored and others that ended, and asks the host for an earlier wake-up if that is needed.
pub(crate) fn set_timers(shared: &Shared, added: &[TimerRow], ended: &[TimerRow]) {
    if added.is_empty() && ended.is_empty() {
        return;
    }
    if let Some(next) = shared.timers.change(added, ended, shared.clock()) {
        shared.host.wake_at(next);
    }
}

/// Reads the timers of an owned run that another node has stored.
pub(crate) fn read_timers(shared: &Shared, run: RunNo) -> Result<(), StoreError> {
    let Some(nodes) = shared.nodes() else { return Ok(()) };
    let rows: Vec<TimerRow> = nodes.timers_of(run)?;
    if let Some(next) = shared.timers.add_unknown(&rows, shared.clock()) {
        shared.host.wake_at(next);
    }
    shared.runs.with(run, |_, state| state.has_timers = true);
    Ok(())
}
