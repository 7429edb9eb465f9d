//! Runs that leave memory.

use std::sync::Arc;

use dacapo_store::RunNo;

use crate::crash_guard::hooks;
use crate::run::cached_run::{CachedRun, PlayState};
use crate::run::deliver::{ask, wake, with_run};
use crate::shared::Shared;

/// Removes a run from memory, whatever it is doing.
pub(crate) fn forget(shared: &Arc<Shared>, run: RunNo) {
    let Some(removed) = shared.runs.remove(run) else { return };
    for request in removed.requests {
        // The request was made while the run closed: it is made again, of the closed run.
        ask(shared, run, request);
    }
    if !removed.resets.is_empty() {
        with_run(shared, run, |state| state.resets.extend(removed.resets));
    }
    if let Some(playable) = removed.playable {
        shared.drop_later(playable);
    }
    hooks::ended(shared, hooks::Ended::Play(&removed.run));
}

/// Removes an entry that holds nothing from memory, unless it has got work meanwhile.
pub(crate) fn leave(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    if let Some(playable) = shared.runs.leave(cached) {
        shared.drop_later(playable);
    }
    let mut state = cached.lock();
    if !state.is_gone && state.play_state == PlayState::Idle {
        wake(shared, cached, &mut state);
    }
}
