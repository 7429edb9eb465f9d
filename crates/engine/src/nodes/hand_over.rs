//! Giving shards away, or losing them: their runs leave memory. Attempts that run go on, and their results are stored.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_store::{RunNo, Shards, TaskNo};

use crate::activity::local;
use crate::crash_guard::hooks::{Ended, ended, forget_lost};
use crate::host::WorkKind;
use crate::lifecycle::shutdown;
use crate::lifecycle::zombies::give_up;
use crate::run::cached_run::CachedRun;
use crate::run::deliver::store_results;
use crate::run::message::Message;
use crate::shared::Shared;

/// The error of a caller whose run another node plays from now on.
pub(crate) fn moved() -> Error {
    Error::Unavailable("another node has taken over the run meanwhile: call again".to_owned())
}

/// Begins no attempt of these shards any more. Returns the tasks whose attempts run, which this node goes on with.
pub(crate) fn give(shared: &Shared, shards: &Shards) -> Vec<TaskNo> {
    let left = shared.tasks.leave(|run| shards.has_run(run));
    shared.timers.disarm(&left.alarms);
    left.running
}

/// Drops what is in memory of these shards. With `all`, this node was taken for dead: its attempts are given up, too.
pub(crate) fn lost(shared: &Arc<Shared>, shards: &Shards, all: bool) {
    let is_lost = |run: RunNo| all || shards.has_run(run);
    shared.timers.forget(is_lost);
    shared.watchers.forget(is_lost);
    shared.run_meters.open().lose(|shard| all || shards.contains(shard));
    if all {
        for task in shared.tasks.remove_all() {
            if let Some(handle) = task.handle() {
                give_up(shared, &handle, "other nodes took this one for dead");
            }
        }
    } else {
        let left = shared.tasks.leave(is_lost);
        shared.timers.disarm(&left.alarms);
    }
    shared.waiters.runs_moved(is_lost, &moved());
    for cached in shared.runs.all() {
        if is_lost(cached.no) {
            drop_run(shared, &cached);
        }
    }
    forget_lost(shared, is_lost);
    shutdown::check(shared);
}

/// Stores the results that a turn of a run has taken, which is not committed any more: the run has left memory meanwhile, and the
/// thread that removed it did not know what the turn had taken.
pub(crate) fn store_taken(shared: &Arc<Shared>, cached: &CachedRun) {
    let mut taken = cached.lock().take_uncommitted();
    taken.retain(|message| matches!(message, Message::Result { .. }));
    store_later(shared, cached.no, taken);
}

/// Stores results on a thread that may block.
fn store_later(shared: &Arc<Shared>, run: RunNo, results: Vec<Message>) {
    if results.is_empty() {
        return;
    }
    // Until the results are stored, they are in no inbox and in no row: a shutdown must not end before.
    shared.shutdown.begin_write();
    shared.later(WorkKind::Write, Some(run), move |shared| {
        store_results(shared, run, results);
        shared.end_write();
    });
}

/// Removes a run from memory that another node plays now.
pub(crate) fn drop_run(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    let run = cached.no;
    let Some(removed) = shared.runs.remove_entry(cached) else { return };
    // Until the results are stored, they are in no inbox and in no row: a shutdown must not end before.
    shared.shutdown.begin_write();
    let mut state = removed.run.lock();
    if removed.playable.is_some() {
        // Turns that were deferred are not committed.
        state.put_back_all();
    }
    let results = state.take_results();
    drop(state);
    removed.requests.into_iter().for_each(|request| request.refuse(moved()));
    removed.resets.into_iter().for_each(|reset| drop(reset.answer.send(Err(moved()))));
    if let Some(playable) = removed.playable {
        shared.drop_later(playable);
    }
    local::give_up_all(shared, run, "another node plays the run now");
    ended(shared, Ended::Play(&removed.run));
    store_later(shared, run, results);
    shared.end_write();
}
