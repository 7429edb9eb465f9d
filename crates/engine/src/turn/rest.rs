//! A run at rest: after a turn, or when there was nothing to play.

use std::sync::Arc;

use crate::crash_guard::hooks::{Ended, ended};
use crate::lifecycle::shutdown;
use crate::run::cached_run::{CachedRun, PlayState, Playable};
use crate::run::deliver::wake;
use crate::run::forget::leave;
use crate::shared::Shared;

/// Puts a run at rest. It goes on at once if it has work, and leaves memory if the cache says so.
pub(crate) fn rest(shared: &Arc<Shared>, cached: &Arc<CachedRun>, playable: Option<Box<Playable>>) {
    let defers = playable.as_ref().is_some_and(|playable| !playable.deferred.is_empty());
    let is_pinned = cached.lock().is_pinned;
    // A run on probation leaves memory, so that the next play finds out whether it still is.
    let keeps = defers || if is_pinned { shared.local.is_running(cached.no) } else { shared.runs.keeps() };
    if !is_pinned || !keeps {
        ended(shared, Ended::Play(cached));
    }
    let (playable, dropped) = if keeps { (playable, None) } else { (None, playable) };
    let mut state = cached.lock();
    if state.is_gone {
        // Another thread closed the run meanwhile, perhaps before it was admitted.
        drop(state);
        ended(shared, Ended::Play(cached));
        if let Some(playable) = playable.or(dropped) {
            shared.drop_later(playable);
        }
        return shutdown::check(shared);
    }
    state.play_state = PlayState::Idle;
    state.playable = playable;
    let (has_work, leaves) = (state.has_work(), state.playable.is_none());
    if has_work {
        wake(shared, cached, &mut state);
    }
    drop(state);
    if !has_work && leaves {
        leave(shared, cached);
    }
    if let Some(playable) = dropped {
        shared.drop_later(playable);
    }
    shutdown::check(shared);
    make_room(shared);
}

/// Removes runs from memory that were not used for long, if there are too many.
fn make_room(shared: &Arc<Shared>) {
    while let Some(cached) = shared.runs.make_room() {
        let playable = cached.lock().playable.take();
        if let Some(playable) = playable {
            shared.drop_later(playable);
        }
    }
}

/// Puts a run at rest that has nothing to keep in memory, when the thread that played it is done with it.
pub(crate) fn retire(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    ended(shared, Ended::Play(cached));
    cached.lock().play_state = PlayState::Idle;
    leave(shared, cached);
    shutdown::check(shared);
}
