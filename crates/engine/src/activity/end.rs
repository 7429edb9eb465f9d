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

/// Ends an attempt with this result. An attempt that ends after one of its timeouts was due counts as timed out.
pub(crate) fn end_attempt(
    shared: &Arc<Shared>,
    (run, seq, attempt): (RunNo, Seq, u32),
    result: Result<Payload, Failure>,
) {
    let result = within_limit(result, shared.options.payload_limit);
    let is_stopping = |queue: &_| shared.shutdown.is_stopping(queue);
    // Between the end of the attempt and the delivery, the result is neither with a running attempt nor in an inbox: a
    // shutdown must not end in between.
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

/// Delivers the outcome of an activity to its run.
pub(crate) fn resolve(
    shared: &Arc<Shared>,
    run: RunNo,
    task: &Task,
    result: Result<Payload, Failure>,
    retry: RetryState,
) {
    let outcome = task.outcome(result, retry);
    deliver(shared, run, Message::Result { task: task.no, seq: task.command.seq, outcome, retried: task.retried() });
}

/// Stores that an attempt failed, and arms the next one. `told` is called with the result of the write.
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
                // A failed write loses the count of an attempt, not the attempt.
                Ok(_) | Err(_) => {
                    shared.arm_in(at.since(shared.now()), Due::Task { run, seq, attempt });
                }
            }
            told(result.map(drop));
        },
    );
}

/// Leaves an attempt whose code has ended to the holder of its token. The attempt keeps its place until that is stored: a
/// process that shuts down waits for it, so that the next process does not make the attempt again.
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
        // The attempt may have timed out, or the workflow may no longer want it.
        let Some(write) = shared.tasks.write_of((run, seq, attempt), now) else { return };
        submit(shared, Write::Attempt(Box::new(write)), move |shared, result| {
            match result {
                // The activity is over, or its run is.
                Err(StoreError::Refused(_)) => drop(shared.tasks.remove(run, seq)),
                // A failed write costs another attempt, and only after a restart.
                Ok(_) | Err(_) => shared.tasks.leave_to_external((run, seq, attempt)),
            }
            dispatch(shared);
            shutdown::check(shared);
        });
    });
}
