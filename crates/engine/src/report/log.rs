//! Bad news for people. It goes to `tracing`; where nobody listens there, it goes to the standard error stream, because a
//! program that waits for ever without a word is worse than a line too many.

use std::fmt::Display;

use dacapo_core::Name;

use crate::inner::{Inner, lock};
use crate::report::deduplication::{Say, cause_of};

/// A run cannot go on by itself.
pub(crate) fn about_run(workflow_id: &Name, run_id: &Name, news: &dyn Display) {
    if somebody_listens() {
        tracing::warn!(%workflow_id, %run_id, "{news}");
    } else {
        eprintln!("dacapo: run {workflow_id:?} ({run_id}): {news}");
    }
}

impl Inner {
    /// A run cannot go on for this reason. Many may be in the same trouble: the first is told in full, the others are counted.
    pub(crate) fn tell_stuck(&self, workflow_id: &Name, run_id: &Name, what: &str, reason: &str) {
        let say = lock(&self.said).again(format!("{what}{}", cause_of(reason)), self.host.now());
        match say {
            Say::InFull => about_run(workflow_id, run_id, &format_args!("{what}{reason}")),
            Say::Count(more) => {
                let headline = reason.lines().next().unwrap_or_default();
                about_run(workflow_id, run_id, &format_args!("{what}{headline} (and {more} more for the same cause)"));
            }
            Say::Nothing => tracing::debug!(%workflow_id, %run_id, "{what}{reason}"),
        }
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

/// Something that whoever watches wants to know.
pub(crate) fn news(news: &dyn Display) {
    if somebody_listens() {
        tracing::info!("{news}");
    } else {
        eprintln!("dacapo: {news}");
    }
}

fn somebody_listens() -> bool {
    tracing::dispatcher::has_been_set()
}
