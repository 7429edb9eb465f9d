//! The end of an engine: from here on nothing is played or written. The next engine goes on from what the store holds.

use dacapo_client::Error;

use crate::report::log;
use crate::shared::Shared;

/// Stops the engine for this reason. Gives up attempts, and answers callers that wait with the error.
pub(crate) fn halt(shared: &Shared, error: Error) {
    if !shared.halted.halt(error.clone()) {
        return;
    }
    if error != Error::ShutDown {
        log::engine_error(&format_args!(
            "the engine stops; what was committed is not lost. Start the process again: {error}"
        ));
        shared.zombie_alarms.shut_down(&error.to_string());
    }
    shared.shutdown.break_off(shared.host.steady_now(), store_error(error.clone()));
    shared.waiters.stop();
    // Collect the handles first: giving up drops user code, which must run while no lock is held.
    let mut handles = shared.tasks.handles();
    handles.extend(shared.local.take_all());
    for handle in handles {
        handle.give_up("the engine has stopped");
    }
    refuse_callers(shared, &error);
}

/// Returns the error for which an engine has stopped; none if a caller asked for it.
pub(crate) fn store_error(reason: Error) -> Option<Error> {
    (reason != Error::ShutDown).then_some(reason)
}

/// Answers callers that wait for a run's answer, or for a reset, with the error, and drops the runs' code.
fn refuse_callers(shared: &Shared, error: &Error) {
    for run in shared.runs.all() {
        let mut state = run.lock();
        let (requests, playable) = (state.take_requests(), state.playable.take());
        let resets = std::mem::take(&mut state.resets);
        drop(state);
        drop(playable);
        for reset in resets {
            let _ = reset.answer.send(Err(error.clone()));
        }
        for request in requests {
            request.refuse(error.clone());
        }
    }
}

/// Stops the engine because a caller asked for it, and closes the store. Returns the store's error, if there is one.
pub(crate) fn halt_and_close(shared: &Shared) -> Option<Error> {
    let before = shared.halted.reason().and_then(store_error);
    halt(shared, Error::ShutDown);
    let Some(error) = shared.store().close().err() else { return before };
    log::engine_error(&format_args!("the engine has stopped, and something is wrong with its store: {error}"));
    Some(error.into())
}
