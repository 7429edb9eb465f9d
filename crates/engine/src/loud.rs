//! Bad news for people. It goes to `tracing`; where nobody listens there, it goes to the standard error stream, because a
//! program that waits for ever without a word is worse than a line too many.

use std::fmt::Display;

use dacapo_core::Name;

/// A run cannot go on by itself.
pub(crate) fn about_run(workflow_id: &Name, run_id: &Name, news: &dyn Display) {
    if somebody_listens() {
        tracing::warn!(%workflow_id, %run_id, "{news}");
    } else {
        eprintln!("dacapo: run {workflow_id:?} ({run_id}): {news}");
    }
}

/// The engine itself is in trouble.
pub(crate) fn about_engine(news: &dyn Display) {
    if somebody_listens() {
        tracing::error!("{news}");
    } else {
        eprintln!("dacapo: {news}");
    }
}

fn somebody_listens() -> bool {
    tracing::dispatcher::has_been_set()
}
