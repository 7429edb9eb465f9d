//! Graceful shutdown: no attempt begins; attempts that run may end, then they are asked to stop, then they are cut off.
//!
//! ```text
//!   shut_down ──▶ draining ──(grace period is over)──▶ stopping ──(force timeout is over)──▶ cut off
//!                    │                                    │                                     │
//!                    └────────── nothing runs ────────────┴─────────────────────────────────────┴──▶ stopped
//! ```
//!
//! An activity that is cut off is in the store as it was: the next process tries it again at once.

use std::sync::Arc;

use dacapo_core::Name;
use dacapo_store::{StoreError, Write, Written};
use dacapo_worker::{DrainStep, StoppingCode};
use tokio::sync::oneshot;

use crate::activity::pending::pending_activity;
use crate::activity::task::{Task, TaskState};
use crate::host::WorkKind;
use crate::lifecycle::halt::{halt_and_close, store_error};
use crate::lifecycle::shutdown_state::ShutdownReport;
use crate::run::cached_run::PlayState;
use crate::run::deliver::wake;
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::writes::submit;

/// Begins to shut down. Turns go on meanwhile, so that results are recorded.
pub(crate) fn begin(shared: &Arc<Shared>, waiter: Option<oneshot::Sender<ShutdownReport>>) {
    if let Some(error) = shared.halted.reason() {
        // There is nothing to wait for, and a caller learns why.
        let report = ShutdownReport { error: store_error(error), ..ShutdownReport::default() };
        return waiter.into_iter().for_each(|waiter| drop(waiter.send(report.clone())));
    }
    let began = shared.host.steady_now();
    let Some(drain) = shared.shutdown.begin(began, waiter) else { return };
    if shared.halted.is_halted() {
        // The engine stopped this very moment, and found no shutdown to break off.
        return shared.shutdown.break_off(began, shared.halted.reason().and_then(store_error));
    }
    flush_deferred(shared);
    hand_over(shared);
    for worker in shared.workers.all() {
        for (at, step) in drain.steps(worker) {
            shared.arm_in(at.since(began.0), Due::Drain(step));
        }
    }
    check(shared);
}

/// Ends a shutdown if nothing that it waits for runs any more. Called whenever such work has ended.
pub(crate) fn check(shared: &Arc<Shared>) {
    let Some(drain) = shared.shutdown.waiting() else { return };
    // In the order in which a result passes: from its attempt, by a write, to its run.
    let is_busy =
        || !shared.tasks.is_idle() || !shared.local.is_idle() || shared.shutdown.is_writing() || is_playing(shared);
    let waits = drain.waits(shared.workers.all(), shared.host.steady_now().0, is_busy) || shared.shutdown.is_writing();
    if !waits && shared.shutdown.end() {
        shared.later(WorkKind::Write, None, |shared| end(shared));
    }
}

fn is_playing(shared: &Shared) -> bool {
    shared.runs.all().iter().any(|cached| {
        let state = cached.lock();
        !matches!(state.play_state, PlayState::Idle | PlayState::Stuck)
            || !state.has_nothing_uncommitted()
            || state.has_results()
    })
}

/// Commits turns that were deferred for local work: the work whose results they took must not be done again.
fn flush_deferred(shared: &Arc<Shared>) {
    for cached in shared.runs.all() {
        let mut state = cached.lock();
        if state.defers_turns() {
            state.flush = true;
            wake(shared, &cached, &mut state);
        }
    }
}

/// Has other nodes play the runs of this one from now on. Its attempts that run may end here.
fn hand_over(shared: &Arc<Shared>) {
    if shared.nodes().is_none() {
        return;
    }
    // The shutdown does not wait for it, because the store may be away: closing it hands over, too.
    shared.later(WorkKind::Write, None, |shared| {
        if let Some(nodes) = shared.nodes().filter(|_| !shared.halted.is_halted())
            && let Err(error) = nodes.stop_serving()
        {
            tracing::debug!(%error, "runs are handed over when the process has ended");
        }
    });
}

/// Takes a step of the shutdown that is due.
pub(crate) fn step(shared: &Arc<Shared>, step: &DrainStep) {
    match step {
        DrainStep::AskToStop(queue) => ask_to_stop(shared, queue),
        DrainStep::CutOff(queue) => cut_off(shared, queue),
        DrainStep::StopWaiting => {}
    }
    check(shared);
}

fn ask_to_stop(shared: &Shared, queue: &Name) {
    let mut handles = shared.tasks.handles();
    handles.extend(shared.local.handles());
    handles.retain(|handle| handle.ctx().info().queue == *queue);
    shared.shutdown.ask_to_stop(queue, handles.len());
    for handle in handles {
        handle.cancel("the worker shuts down");
    }
}

fn cut_off(shared: &Arc<Shared>, queue: &Name) {
    let tasks = shared.tasks.take_running(queue);
    store_reports(shared, &tasks);
    let mut handles: Vec<_> = tasks.iter().filter_map(Task::handle).collect();
    handles.extend(shared.local.take_queue(queue));
    shared.shutdown.cut_off(queue, tasks.iter().map(pending_activity));
    for handle in handles {
        handle.give_up("the worker has shut down");
    }
}

/// Stores the last reports of attempts that are cut off, where they are not stored yet.
fn store_reports(shared: &Arc<Shared>, tasks: &[Task]) {
    let now = shared.now();
    let is_unstored = |task: &&Task| matches!(&task.state, TaskState::Running(attempting) if attempting.unstored);
    for report in tasks.iter().filter(is_unstored).map(|task| task.write(now)) {
        write_before_shutdown(shared, move |_| Some(Write::Attempt(Box::new(report))), |_, _| {});
    }
}

fn end(shared: &Shared) {
    let left: Vec<StoppingCode> = shared.workers.all().flat_map(|worker| worker.health().entities).collect();
    for StoppingCode { entity, since, place, .. } in &left {
        tracing::warn!(%entity, %since, place, "the shutdown no longer waits for code that was asked to stop");
    }
    let store = halt_and_close(shared);
    shared.shutdown.report(shared.host.steady_now(), left, store);
}

/// Makes a write and submits it, on a thread that may block. Can be called on any thread. A shutdown waits for the
/// write. `done` is a commit callback.
pub(crate) fn write_before_shutdown(
    shared: &Arc<Shared>,
    write: impl FnOnce(&Arc<Shared>) -> Option<Write> + Send + 'static,
    done: impl FnOnce(&Arc<Shared>, Result<Written, StoreError>) + Send + 'static,
) {
    shared.shutdown.begin_write();
    let written = |shared: &Arc<Shared>| {
        shared.shutdown.end_write();
        check(shared);
    };
    shared.later(WorkKind::Write, None, move |shared| match write(shared) {
        Some(write) => submit(shared, write, move |shared, result| {
            done(shared, result);
            written(shared);
        }),
        None => written(shared),
    });
}
