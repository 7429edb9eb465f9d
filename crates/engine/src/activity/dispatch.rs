//! Starting attempts: tasks that are ready run as far as there are places.

use std::sync::Arc;

use dacapo_core::{CommandKind, Payload, TimeoutKind};
use dacapo_store::{Doing, Notice, Recipient, RunNo, StoreError};
use dacapo_worker::{Activity, ActivityCtx, Attempt};

use crate::activity::blocked;
use crate::activity::end::{end_attempt, leave_to_external};
use crate::activity::heartbeat::heartbeat;
use crate::activity::task::Task;
use crate::crash_guard::hooks::{CLEARED_AFTER, note_attempt};
use crate::host::{Work, WorkKind};
use crate::lifecycle::halt::halt;
use crate::lifecycle::shutdown;
use crate::shared::Shared;
use crate::timer::wheel::Due;

/// Starts tasks that are ready, as far as there are places.
pub(crate) fn dispatch(shared: &Arc<Shared>) {
    while !shared.halted.is_halted() && !shared.shutdown.has_begun() {
        let (now, steady) = shared.clock();
        let Some((run, task)) = shared.tasks.next(now, steady) else {
            if shared.tasks.takes_more() {
                shared.later(WorkKind::Write, None, shared.claim);
            }
            return;
        };
        let attempt = (run, task.command.seq, task.attempt);
        if task.crash_count > 0 {
            let (run, seq, attempt) = attempt;
            let alarm = shared.arm_in(CLEARED_AFTER, Due::EndProbation { run, seq, attempt });
            shared.tasks.add_alarm((run, seq, attempt), alarm);
        }
        start_attempt(shared, run, task);
    }
}

fn start_attempt(shared: &Arc<Shared>, run: RunNo, task: Task) {
    let Some(activity) = shared.options.registry.find_activity(&task.command.activity).cloned() else {
        if shared.nodes().is_some_and(|nodes| nodes.others_serve(task.queue())) {
            return decline(shared, run, &task);
        }
        shared.tasks.set_unserved(run, task.command.seq);
        return blocked::report_unserved(shared, run, &task);
    };
    if task.has_input {
        let input = task.command.input.clone();
        return start_with_input(shared, run, &task, &activity, input);
    }
    let this = shared.clone();
    let work = move || {
        if this.halted.is_halted() {
            return;
        }
        if this.shutdown.has_begun() {
            // The attempt has not begun: the next process makes it.
            drop(this.tasks.remove(run, task.command.seq));
            return shutdown::check(&this);
        }
        match read_input(&this, run, &task) {
            Ok(Some(input)) => start_with_input(&this, run, &task, &activity, input),
            Ok(None) => without_input(&this, run, &task),
            Err(error) => halt(&this, error.into()),
        }
    };
    shared.host.perform(Work::new(WorkKind::Attempt, Some(run), None, work));
}

/// Gives a task back whose type is not served here, as during a rolling deploy: another node that serves its queue may serve it.
fn decline(shared: &Arc<Shared>, run: RunNo, task: &Task) {
    drop(shared.tasks.remove(run, task.command.seq));
    blocked::log_unserved(shared, task);
    let (no, queue) = (task.no, task.queue().clone());
    shared.later(WorkKind::Write, Some(run), move |shared| {
        let Some(nodes) = shared.nodes() else { return };
        match nodes.decline(&[no]) {
            Ok(()) => nodes.notify(Recipient::Serving(queue), Notice::Tasks),
            Err(error) => tracing::error!(%run, %error, "a task cannot be given back"),
        }
    });
}

fn start_with_input(shared: &Arc<Shared>, run: RunNo, task: &Task, activity: &Activity, input: Vec<Payload>) {
    let (now, steady) = shared.clock();
    let key = (run, task.command.seq, task.attempt);
    let this = Arc::downgrade(shared);
    let heartbeats = {
        let this = this.clone();
        move |details: Payload| {
            if let Some(shared) = this.upgrade() {
                heartbeat(&shared, key, details);
            }
        }
    };
    let ctx = ActivityCtx::new(task.attempt_info(now), Arc::new(heartbeats), shared.options.payload_limit);
    let seen = ctx.clone();
    let attempt = Attempt::new(activity, ctx, input, move |result| {
        let Some(shared) = this.upgrade() else { return };
        match seen.is_left_to_others(&result) {
            true => leave_to_external(&shared, key, dispatch),
            false => {
                end_attempt(&shared, key, result);
                dispatch(&shared);
                shutdown::check(&shared);
            }
        }
    });
    let attempt = attempt.counted_by(shared.workers.of(task.queue()).meters().of_activity(&task.command.activity));
    let handle = attempt.handle();
    let (run, seq, number) = key;
    let timeouts = &task.command.timeouts;
    let limits = [(timeouts.start_to_close, TimeoutKind::StartToClose), (timeouts.heartbeat, TimeoutKind::Heartbeat)];
    let alarms: Vec<_> = limits
        .into_iter()
        .filter_map(|(limit, kind)| Some(shared.arm_in(limit?, Due::Attempt { run, seq, attempt: number, kind })))
        .collect();
    match shared.tasks.begin(key, &handle, &alarms, (now, steady)) {
        Some(cancelled) => {
            if let Some(reason) = cancelled {
                handle.cancel(&reason);
            }
            if shared.halted.is_halted() {
                // The engine stopped before it knew of this handle.
                return handle.give_up("the engine has stopped");
            }
            note_attempt(shared, Doing::Attempt(task.no), &handle);
            shared.host.attempt(attempt);
        }
        // The task was removed before the queue had the handle of this attempt.
        None => shared.timers.disarm(&alarms),
    }
}

/// Reads the input of a task from the turn that scheduled it. None if it is gone.
fn read_input(shared: &Shared, run: RunNo, task: &Task) -> Result<Option<Vec<Payload>>, StoreError> {
    let (turn, position) = task.origin;
    let mut records = shared.last_record.lock();
    let record = records.get(shared.store(), run, turn)?;
    let command = record.and_then(|record| record.commands.get(position as usize)).map(|command| &command.kind);
    Ok(match command {
        Some(CommandKind::Activity(command)) => Some(command.input.clone()),
        _ => None,
    })
}

/// Handles a task whose input is gone: removes it if its run is closed; otherwise the store is damaged, and the run is
/// marked as stuck.
fn without_input(shared: &Arc<Shared>, run: RunNo, task: &Task) {
    let seq = task.command.seq;
    let is_open = shared.store().run(run).is_ok_and(|row| row.is_some_and(|row| row.status.is_open()));
    match is_open {
        true => {
            shared.tasks.set_unserved(run, seq);
            blocked::report_no_input(shared, run, task);
        }
        false => drop(shared.tasks.remove(run, seq)),
    }
    // The task's place is free.
    dispatch(shared);
    shutdown::check(shared);
}
