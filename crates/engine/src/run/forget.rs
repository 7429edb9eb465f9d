//! Runs that leave memory.

use std::sync::Arc;

use dacapo_store::{RunNo, TimerKind, TimerRow, Write};

use crate::crash_guard::hooks;
use crate::host::WorkKind;
use crate::run::cached_run::{CachedRun, Stage};
use crate::run::deliver::{ask, wake, with_run};
use crate::run::message::Message;
use crate::shared::Shared;
use crate::timer::set_timers;
use crate::writes::submit;

/// Takes a run out of memory, whatever it is doing.
pub(crate) fn forget(shared: &Arc<Shared>, run: RunNo) {
    let Some(removed) = shared.runs.remove(run) else { return };
    for request in removed.requests {
        // Asked while it closed: asked again, of the closed run.
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

/// Takes an entry that holds nothing out of memory, unless something came for it meanwhile.
pub(crate) fn leave(shared: &Arc<Shared>, cached: &Arc<CachedRun>) {
    if let Some(playable) = shared.runs.leave(cached) {
        shared.drop_later(playable);
    }
    let mut state = cached.lock();
    if !state.is_gone && state.stage == Stage::Idle {
        wake(shared, cached, &mut state);
    }
}

/// Removes the rows of what came for a run after it closed: no turn takes it.
pub(crate) fn forget_late(shared: &Arc<Shared>, run: RunNo, late: &[Message]) {
    let tasks: Vec<_> = late
        .iter()
        .filter_map(|message| match message {
            Message::Result { task, .. } => Some(*task),
            _ => None,
        })
        .collect();
    let timers: Vec<_> = late
        .iter()
        .filter_map(|message| match message {
            Message::Timer { seq, due } => Some((*due, TimerKind::Sleep(*seq))),
            _ => None,
        })
        .collect();
    if tasks.is_empty() && timers.is_empty() {
        return;
    }
    let rows: Vec<TimerRow> = timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
    shared.later(WorkKind::Write, Some(run), move |shared| {
        submit(shared, Write::Forget { run, tasks, timers }, move |shared, result| {
            if result.is_ok() {
                set_timers(shared, &[], &rows);
            }
        });
    });
}
