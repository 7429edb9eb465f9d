//! Notices from other nodes, and looking for what they may have missed.

use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_core::Seq;
use dacapo_store::{NodeNo, Notice, Recipient, RunNo, Shards, SharedStore, StoreError, TaskNo};

use crate::activity::adopt::{Origins, adopt};
use crate::activity::cancel::{cancel_task, give_up_tasks};
use crate::activity::dispatch::dispatch;
use crate::host::WorkKind;
use crate::lifecycle::count_open::count_open_again;
use crate::lifecycle::shutdown;
use crate::nodes::claim::claim;
use crate::read::outcome::{closed_run, outcome_of};
use crate::run::cached_run::PlayState;
use crate::run::deliver::wake;
use crate::run::forget::forget;
use crate::shared::Shared;
use crate::timer::read_timers;
use crate::turn::effects::close_other;

/// Receives a notice of another node.
pub(crate) fn receive(shared: &Arc<Shared>, notice: Notice) {
    match notice {
        Notice::Stored(run) => stored(shared, run),
        Notice::Watched(run, node) => watched(shared, run, node),
        Notice::Changed(run) => look_at(shared, run),
        Notice::Cancelled(run, seq) => {
            shared.later(WorkKind::Write, Some(run), move |shared| cancelled(shared, run, seq));
        }
        Notice::Tasks => shared.later(WorkKind::Write, None, claim),
        other => tracing::debug!(?other, "a notice of a kind that this build does not know"),
    }
}

/// Stops work at an activity of another node's run that is no longer wanted.
fn cancelled(shared: &Arc<Shared>, run: RunNo, seq: Seq) {
    let Some(no) = shared.tasks.number(run, seq) else { return };
    match shared.store().task(no) {
        // The owner waits for the outcome, which the attempt sends when it has stopped.
        Ok(Some(_)) => cancel_task(shared, run, seq, true),
        Ok(None) => {
            give_up_tasks(shared, run, |task| task == no);
            dispatch(shared);
            shutdown::check(shared);
        }
        Err(error) => tracing::error!(%run, %error, "a task cannot be read"),
    }
}

/// Looks at an owned run for which another node has stored something.
pub(crate) fn stored(shared: &Arc<Shared>, run: RunNo) {
    shared.later(WorkKind::Read, Some(run), move |shared| {
        if let Err(error) = look_at_owned(shared, run) {
            tracing::error!(%run, %error, "what another node has stored for a run cannot be read yet");
        }
    });
}

fn look_at_owned(shared: &Arc<Shared>, run: RunNo) -> Result<(), StoreError> {
    if !shared.owns(run) {
        return Ok(());
    }
    let Some(row) = shared.store().run(run)? else {
        forget(shared, run);
        return Ok(());
    };
    if !row.status.is_open() {
        close_other(shared, &closed_run(&row));
        return Ok(());
    }
    let is_played_here = shared.runs.get(run).is_some_and(|cached| {
        let state = cached.lock();
        state.playable.is_some() || state.play_state == PlayState::Busy
    });
    if row.turns == 0 || !is_played_here {
        // Another node may have begun it, or have reset it from another run: with timers.
        read_timers(shared, run)?;
    }
    shared.runs.with(run, |cached, state| {
        state.note_stored();
        wake(shared, cached, state);
    });
    Ok(())
}

/// Notes that a node waits for the end of an owned run, and notifies it at once if the run has ended or is stuck.
fn watched(shared: &Arc<Shared>, run: RunNo, node: NodeNo) {
    // Noted first: the run may close before it is looked at.
    shared.watchers.add(run, node);
    shared.later(WorkKind::Read, Some(run), move |shared| {
        let row = shared.store().run(run);
        let waits = row.is_ok_and(|row| row.is_some_and(|row| row.status.is_open() && row.stuck.is_none()));
        if let Some(nodes) = shared.nodes().filter(|_| !waits) {
            nodes.notify(Recipient::Node(node), Notice::Changed(run));
        }
    });
}

/// Asks the owner of a run to notify this node when the run closes.
pub(crate) fn watch(shared: &Shared, run: RunNo) {
    if let Some(nodes) = shared.nodes().filter(|nodes| !nodes.owns(run)) {
        nodes.notify(Recipient::OwnerOf(run), Notice::Watched(run, nodes.node()));
    }
}

/// Looks at a run for whose end callers wait here, and answers them if it has come.
fn look_at(shared: &Arc<Shared>, run: RunNo) {
    shared.later(WorkKind::Read, Some(run), move |shared| match shared.store().run(run) {
        Ok(Some(row)) if !row.status.is_open() => {
            shared.waiters.run_closed(run, &row.first_run_id, row.status, &outcome_of(row.result.as_deref()));
        }
        Ok(Some(row)) => {
            if let Some(stuck) = row.stuck {
                shared.waiters.wake_result_or_stuck(run, &stuck.reason);
            }
            if shared.waiters.waits_for(run) {
                watch(shared, run);
            }
        }
        Ok(None) => {}
        Err(error) => tracing::error!(%run, %error, "a run that callers wait for cannot be read"),
    });
}

/// Looks for all that notices may have missed: messages for owned runs, the ends of runs that are in memory or that callers wait
/// for, tasks that no node has, and tasks that this one has and does not know.
pub(crate) fn look(shared: &Arc<Shared>, owned: Shards) {
    shared.later(WorkKind::Read, None, move |shared| {
        let Some(nodes) = shared.nodes() else { return };
        follow_clock(shared, nodes);
        if let Err(error) = look_at_store(shared, nodes, &owned) {
            tracing::error!(%error, "what other nodes have done cannot be looked for");
        }
        claim(shared);
        count_open_again(shared);
    });
}

fn look_at_store(shared: &Arc<Shared>, nodes: &dyn SharedStore, owned: &Shards) -> Result<(), StoreError> {
    let waited: BTreeSet<RunNo> = shared.waiters.runs().into_iter().collect();
    let idle = shared.runs.all().into_iter().filter(|cached| cached.lock().play_state == PlayState::Idle);
    let runs: BTreeSet<RunNo> = waited.iter().copied().chain(idle.map(|cached| cached.no)).collect();
    let looked = nodes.look(owned, &runs.into_iter().collect::<Vec<_>>())?;
    looked.unseen.into_iter().filter(|run| knows_of_nothing(shared, *run)).for_each(|run| stored(shared, run));
    for run in &looked.ended {
        match shared.owns(*run) {
            true => stored(shared, *run),
            false => look_at(shared, *run),
        }
    }
    looked.stuck.iter().filter(|run| waited.contains(run)).for_each(|run| look_at(shared, *run));
    for run in waited {
        if !looked.ended.contains(&run) {
            watch(shared, run);
        }
    }
    adopt_unknown(shared, nodes, looked.tasks)
}

/// Takes over tasks that the store has as this node's, and that were not in memory at two looks: the answer to a claim was lost.
fn adopt_unknown(shared: &Arc<Shared>, nodes: &dyn SharedStore, tasks: Vec<TaskNo>) -> Result<(), StoreError> {
    if shared.shutdown.has_begun() {
        return Ok(());
    }
    let (me, mut origins) = (Some(nodes.node()), Origins::default());
    for task in shared.tasks.unknown_again(tasks) {
        let Some(row) = shared.store().task(task)?.filter(|row| row.node == me) else { continue };
        let has_result = shared.runs.get(row.run).is_some_and(|cached| cached.lock().has_result(row.seq));
        // The result of another node's run may be on its way to the store.
        let is_written = !shared.owns(row.run) && shared.shutdown.is_writing();
        if shared.workers.serve(&row.queue) && !has_result && !is_written {
            tracing::debug!(run = %row.run, "a task is taken over whose claim was not answered");
            adopt(shared, &row, &mut origins)?;
        }
    }
    Ok(())
}

/// Follows the clock that all nodes share.
pub(crate) fn follow_clock(shared: &Shared, nodes: &dyn SharedStore) {
    let before = shared.host.now();
    match nodes.clock() {
        Ok(common) => shared.common_time.follow(common, (before, shared.host.now())),
        Err(error) => tracing::warn!(%error, "the clock of the store cannot be read"),
    }
}

/// Whether a run is at rest here without a message, so that it does not know of one that the store has.
fn knows_of_nothing(shared: &Shared, run: RunNo) -> bool {
    let Some(cached) = shared.runs.get(run) else { return true };
    let state = cached.lock();
    state.play_state == PlayState::Idle && !state.has_work() && state.has_nothing_uncommitted()
}
