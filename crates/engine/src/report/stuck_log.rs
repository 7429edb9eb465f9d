//! The log of stuck runs: a bad deploy stops many runs for one cause, and one line says as much as a thousand.

use dacapo_core::Timestamp;
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::RunName;

use crate::report::deduplication::{Causes, Repeat};
use crate::report::log;
use crate::report::stuck_reason::StuckReason;

/// The causes of stuck runs that were logged lately.
pub(crate) struct StuckLog(Mutex<Causes>);

impl StuckLog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::STUCK_LOG, Causes::default()))
    }

    /// Logs that a run cannot go on. The first run of a cause is logged in full, the others are counted.
    pub(crate) fn report(&self, run: &RunName, what: &str, reason: &StuckReason, now: Timestamp) {
        let repeat = self.0.lock().again(reason.cause, reason.subject.clone(), now);
        let reason = &reason.text;
        match repeat {
            Repeat::First => log::warn_of_run(run, &format_args!("{what}{reason}")),
            Repeat::Count(more) => {
                let headline = reason.lines().next().unwrap_or_default();
                log::warn_of_run(run, &format_args!("{what}{headline} (and {more} more for the same cause)"));
            }
            Repeat::Quiet => {
                tracing::debug!(workflow_id = %run.workflow_id, run_id = %run.run_id, "{what}{reason}");
            }
        }
    }
}
