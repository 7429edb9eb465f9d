//! The end of an attempt: its result goes to the run, or another attempt follows.

use std::sync::Arc;

use dacapo_core::{Failure, Payload, RetryState, Seq, Timestamp};
use dacapo_store::{AttemptWrite, RunNo, StoreError, Write};

use crate::activity::task::Task;
use crate::activity::task_queue::{AfterAttempt, EndedAttempt};
use crate::host::WorkKind;
use crate::lifecycle::shutdown::{self, write_before_shutdown};
use crate::run::deliver::deliver;
use crate::run::message::Message;
use crate::shared::Shared;
use crate::timer::wheel::Due;
use crate::turn::validate::within_limit;
use crate::writes::submit;

/// An attempt ended with this. One that comes after its timeout was due counts as timed out.
pub(crate) fn end_attempt(
    shared: &Arc<Shared>,
    (run, seq, attempt): (RunNo, Seq, u32),
    result: Result<Payload, Failure>,
) {
    let result = within_limit(result, shared.options.payload_limit);
    let is_stopping = |queue: &_| shared.shutdown.is_stopping(queue);
    // Between the two it is neither running nor in an inbox, and a shutdown must not end.
    shared.shutdown.begin_write();
    let ended = shared.tasks.end_attempt((run, seq, attempt), result, shared.clock(), is_stopping);
    if let Some(EndedAttempt { alarms, then }) = ended {
        shared.timers.disarm(&alarms);
        go_on(shared, (run, seq), then);
    }
    shared.end_write();
}

fn go_on(shared: &Arc<Shared>, (run, seq): (RunNo, Seq), then: AfterAttempt) {
    match then {
        AfterAttempt::End { task, result, retry } => resolve(shared, run, &task, result, retry),
        AfterAttempt::Retry { at, write } => retry_at(shared, (run, seq), at, write, drop),
        AfterAttempt::LeftToNextProcess(report) => {
            if let Some(report) = report {
                write_before_shutdown(shared, move |_| Some(Write::Attempt(Box::new(report))), |_, _| {});
            }
        }
    }
}

/// The outcome of an activity goes to its run.
pub(crate) fn resolve(
    shared: &Arc<Shared>,
    run: RunNo,
    task: &Task,
    result: Result<Payload, Failure>,
    retry: RetryState,
) {
    let outcome = task.outcome(result, retry);
    deliver(shared, run, Message::Result { task: task.no, seq: task.command.seq, outcome });
}

/// Stores that an attempt failed, and arms the next. `told` is told when that is durable.
pub(crate) fn retry_at(
    shared: &Arc<Shared>,
    (run, seq): (RunNo, Seq),
    at: Timestamp,
    write: AttemptWrite,
    told: impl FnOnce(Result<(), StoreError>) + Send + 'static,
) {
    let attempt = write.attempt;
    write_before_shutdown(
        shared,
        move |_| Some(Write::Attempt(Box::new(write))),
        move |shared, result| {
            match &result {
                // The activity is over, or its run is.
                Err(StoreError::Refused(_)) => drop(shared.tasks.remove(run, seq)),
                // A write that failed costs the count of an attempt, and not the attempt.
                Ok(_) | Err(_) => {
                    shared.arm_in(at.since(shared.now()), Due::Task { run, seq, attempt });
                }
            }
            told(result.map(drop));
        },
    );
}

/// The code of an attempt has ended, and the holder of its token says how the attempt ends. It gives up its place when that
/// is stored: a process that shuts down waits for it, so that the next one does not make the attempt again.
pub(crate) fn leave_to_external(
    shared: &Arc<Shared>,
    (run, seq, attempt): (RunNo, Seq, u32),
    dispatch: fn(&Arc<Shared>),
) {
    let now = shared.now();
    if !shared.tasks.begin_to_leave((run, seq, attempt)) {
        return;
    }
    shared.later(WorkKind::Write, Some(run), move |shared| {
        // Its time may be over, or the workflow may not want it any more.
        let Some(write) = shared.tasks.write_of((run, seq, attempt), now) else { return };
        submit(shared, Write::Attempt(Box::new(write)), move |shared, result| {
            match result {
                // It is over, or its run is.
                Err(StoreError::Refused(_)) => drop(shared.tasks.remove(run, seq)),
                // A write that failed costs another attempt, and that only after a restart.
                Ok(_) | Err(_) => shared.tasks.leave_to_external((run, seq, attempt)),
            }
            dispatch(shared);
            shutdown::check(shared);
        });
    });
}
