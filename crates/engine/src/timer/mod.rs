//! Timers: of the store, which survive the process, and of the process alone.

pub(crate) mod end;
pub(crate) mod fire;
pub(crate) mod wheel;

use dacapo_store::TimerRow;

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
