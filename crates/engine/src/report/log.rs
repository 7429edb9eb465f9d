//! Warnings for operators. They go to `tracing`; where no subscriber is installed, they go to the standard error stream,
//! because a program that waits for ever without a word is worse than a line too many.

use std::fmt::Display;

use dacapo_worker::RunName;

/// Warns that a run cannot go on by itself.
pub(crate) fn warn_of_run(run: &RunName, words: &dyn Display) {
    let RunName { workflow_id, run_id, .. } = run;
    if has_subscriber() {
        tracing::warn!(%workflow_id, %run_id, "{words}");
    } else {
        eprintln!("dacapo: run {workflow_id:?} ({run_id}): {words}");
    }
}

/// Logs an error of the engine itself.
pub(crate) fn engine_error(words: &dyn Display) {
    if has_subscriber() {
        tracing::error!("{words}");
    } else {
        eprintln!("dacapo: {words}");
    }
}

/// Warns of a problem that concerns no single run.
pub(crate) fn engine_warning(words: &dyn Display) {
    if has_subscriber() {
        tracing::warn!("{words}");
    } else {
        eprintln!("dacapo: {words}");
    }
}

/// Logs for operators what the engine does.
pub(crate) fn engine_info(words: &dyn Display) {
    if has_subscriber() {
        tracing::info!("{words}");
    } else {
        eprintln!("dacapo: {words}");
    }
}

fn has_subscriber() -> bool {
    tracing::dispatcher::has_been_set()
}
