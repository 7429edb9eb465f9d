//! Firing timers: what each of them leads to.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Failure, FailureKind, TimeoutKind, Timestamp};
use dacapo_store::{RunNo, Status, StoreError, TimerKind, TimerRow, Write, Written};

use crate::activity::blocked::unmark_delayed;
use crate::activity::dispatch::dispatch;
use crate::activity::heartbeat::report_due;
use crate::activity::local;
use crate::activity::timeout::{attempt_timed_out, task_timed_out};
use crate::crash_guard::hooks::clear;
use crate::host::WorkKind;
use crate::lifecycle::halt::halt;
use crate::lifecycle::retention::{expire, sweep};
use crate::lifecycle::{shutdown, zombies};
use crate::nodes::hand_over::drop_run;
use crate::run::cached_run::PlayState;
use crate::run::deliver::{deliver, poke, wake};
use crate::run::message::Message;
use crate::shared::Shared;
use crate::timer::end::end_timer;
use crate::timer::wheel::Due;
use crate::turn::effects::apply_in_other_runs;
use crate::writes::submit;

/// The pause before a write is tried again for which the store had no room.
const AGAIN: Duration = Duration::from_secs(1);

/// Does all that is due.
pub(crate) fn tick(shared: &Arc<Shared>) {
    if shared.halted.is_halted() {
        return;
    }
    let clock = shared.clock();
    loop {
        refill(shared, Some(clock.0));
        let fired = shared.timers.fire(clock);
        if fired.stored.is_empty() && fired.own.is_empty() {
            break;
        }
        fired.stored.into_iter().for_each(|row| fire_stored(shared, row));
        fired.own.into_iter().for_each(|due| fire_own(shared, due));
    }
    dispatch(shared);
    if let Some(next) = shared.timers.next_wake(clock) {
        shared.host.wake_at(next);
    }
}

/// Reads the earliest timers of the store, if memory does not know all timers up to `now`; without `now` in any case.
pub(crate) fn refill(shared: &Shared, now: Option<Timestamp>) {
    let _reading = shared.timers.reading();
    let Some(mut asked) = shared.timers.begin_to_read(now) else { return };
    loop {
        match shared.store().due(Timestamp(u64::MAX), asked) {
            // All rows are due at one moment, and there may be more of them: memory would not know all timers of that
            // moment.
            Ok(rows) if rows.len() >= asked && rows.first().map(|row| row.due) == rows.last().map(|row| row.due) => {
                asked *= 2;
            }
            Ok(rows) => return shared.timers.fill(rows, asked),
            Err(error) => return halt(shared, error.into()),
        }
    }
}

fn fire_stored(shared: &Arc<Shared>, row: TimerRow) {
    let run = row.run;
    if !shared.owns(run) {
        // Its owner has it. If this node becomes the owner, it reads it again.
        return shared.timers.forget_fired(&row);
    }
    match row.kind {
        TimerKind::Sleep(seq) => deliver(shared, run, Message::Timer { seq, due: row.due }),
        TimerKind::Start | TimerKind::Retry => {
            end_timer(shared, row);
            poke(shared, run);
        }
        TimerKind::RunTimeout => time_out_run(shared, row, "the run took longer than its run timeout"),
        TimerKind::ExecutionTimeout => time_out_run(shared, row, "it took longer than its execution timeout"),
        TimerKind::ScheduleToStart(seq) => task_timed_out(shared, row, seq, TimeoutKind::ScheduleToStart),
        TimerKind::ScheduleToClose(seq) => task_timed_out(shared, row, seq, TimeoutKind::ScheduleToClose),
        other => tracing::error!(%run, ?other, "a timer of an unknown kind is ignored"),
    }
}

fn fire_own(shared: &Arc<Shared>, due: Due) {
    match due {
        Due::Task { run, seq, attempt } => {
            if let Some(task) = shared.tasks.make_ready((run, seq, attempt)) {
                unmark_delayed(shared, run, &task);
            }
        }
        Due::Attempt { run, seq, attempt, kind } => attempt_timed_out(shared, (run, seq, attempt), kind),
        Due::Again(row) => fire_stored(shared, row),
        Due::Report { run, seq, attempt } => report_due(shared, (run, seq, attempt)),
        Due::Begin(run) => poke(shared, run),
        Due::Retry(run) => retry_run(shared, run),
        Due::ClearRun(run) => clear(shared, run),
        Due::EndProbation { run, seq, attempt } => shared.tasks.end_probation((run, seq, attempt)),
        Due::Drain(step) => shutdown::step(shared, &step),
        Due::Zombies(queue) => zombies::look(shared, &queue),
        Due::Expire => expire(shared),
        Due::Sweep => sweep(shared),
        Due::EndPause(pause) => pause.end(),
        Due::Flush(run) => flush(shared, run),
        Due::Local { run, seq, attempt } => local::retry_due(shared, (run, seq, attempt)),
        Due::LocalTimeout { run, seq, attempt, kind } => local::timed_out(shared, (run, seq, attempt), kind),
    }
}

/// Commits turns that were deferred for local work.
fn flush(shared: &Arc<Shared>, run: RunNo) {
    if let Some(cached) = shared.runs.get(run) {
        let mut state = cached.lock();
        state.flush = state.playable.is_none() || state.defers_turns();
        wake(shared, &cached, &mut state);
    }
}

/// Plays a stuck run again when its pause is over.
fn retry_run(shared: &Arc<Shared>, run: RunNo) {
    if !shared.owns(run) {
        // Results for the run of another node that could not be stored are stored again.
        return shared.runs.get(run).into_iter().for_each(|cached| drop_run(shared, &cached));
    }
    if shared.runs.get(run).is_some_and(|cached| cached.lock().play_state == PlayState::Stuck) {
        poke(shared, run);
    }
}

/// Closes a run that has used up its time.
fn time_out_run(shared: &Arc<Shared>, row: TimerRow, words: &'static str) {
    let kind = FailureKind::Timeout(TimeoutKind::ScheduleToClose);
    let failure = Box::new(Failure::new(kind, words));
    let write = Write::Close { run: row.run, status: Status::TimedOut, at: shared.now(), failure };
    shared.later(WorkKind::Write, Some(row.run), move |shared| {
        submit(shared, write, move |shared, result| match result {
            Ok(Written::Turn(written)) => {
                end_timer(shared, row);
                apply_in_other_runs(shared, *written);
            }
            Ok(other) => unreachable!("a close was answered with {other:?}"),
            // The run was closed before.
            Err(StoreError::Refused(_)) => end_timer(shared, row),
            Err(error) => {
                tracing::warn!(run = %row.run, %error, "a run past its timeout cannot be closed yet");
                shared.arm_in(AGAIN, Due::Again(row));
            }
        });
    });
}
