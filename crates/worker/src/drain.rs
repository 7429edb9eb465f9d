//! A graceful shutdown as a worker sees it: no attempt begins, attempts may end, then they are asked to stop, then the
//! process no longer waits for them.
//!
//! ```text
//!   begin ──▶ draining ──(grace period is over)──▶ stopping ──(force timeout is over)──▶ cut off
//! ```
//!
//! Every queue goes by its own times, all of them at once. Code that was asked to stop before is waited for as well, for as
//! long as its queue says.

use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_core::{Name, Timestamp};

use crate::worker::Worker;
use crate::zombies::Wait;

/// A shutdown that has begun.
#[derive(Clone, Debug)]
pub struct Drain {
    began: Timestamp,
    stopping: BTreeSet<Name>,
    cut_off: BTreeSet<Name>,
}

/// Something that a shutdown does at its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// The grace period of this queue is over: its attempts are asked to stop.
    AskToStop(Name),
    /// The force timeout of this queue is over: its attempts are left behind.
    CutOff(Name),
    /// Code that was asked to stop before the shutdown is no longer waited for.
    StopWaiting,
}

impl Drain {
    /// A shutdown that begins now.
    pub const fn new(now: Timestamp) -> Self {
        Self { began: now, stopping: BTreeSet::new(), cut_off: BTreeSet::new() }
    }

    /// When it began.
    pub const fn began(&self) -> Timestamp {
        self.began
    }

    /// What it does for a worker, and when.
    pub fn steps(&self, worker: &Worker) -> [(Timestamp, DrainStep); 3] {
        let (queue, values) = (worker.queue(), worker.values());
        let asked = self.began.after(values.shutdown_grace_period);
        [
            (asked, DrainStep::AskToStop(queue.clone())),
            (asked.after(values.shutdown_force_timeout), DrainStep::CutOff(queue.clone())),
            (self.began.after(values.zombie_shutdown_timeout), DrainStep::StopWaiting),
        ]
    }

    /// Attempts of this queue are asked to stop.
    pub fn ask_to_stop(&mut self, queue: &Name) {
        self.stopping.insert(queue.clone());
    }

    /// Attempts of this queue are left behind.
    pub fn cut_off(&mut self, queue: &Name) {
        self.cut_off.insert(queue.clone());
    }

    /// Whether attempts of this queue have been asked to stop: how they fail then is not their fault.
    pub fn is_stopping(&self, queue: &Name) -> bool {
        self.stopping.contains(queue)
    }

    /// Whether it waits, at this time, for what runs in any of these workers (`is_busy`) or was asked to stop before.
    pub fn waits<'a>(
        &self,
        workers: impl IntoIterator<Item = &'a Arc<Worker>> + Clone,
        now: Timestamp,
        is_busy: impl FnOnce() -> bool,
    ) -> bool {
        let is_cut_off = workers.clone().into_iter().all(|worker| self.cut_off.contains(worker.queue()));
        if !is_cut_off && is_busy() {
            return true;
        }
        workers.into_iter().any(|worker| matches!(worker.wait(self.began, now), Wait::Until(_)))
    }
}
