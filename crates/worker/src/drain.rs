//! The steps of a graceful shutdown for a worker: no attempt begins, attempts may end, then they are asked to stop,
//! then the process no longer waits for them.
//!
//! ```text
//!   begin ──▶ draining ──(grace period is over)──▶ stopping ──(force timeout is over)──▶ cut off
//! ```
//!
//! Every queue has its own times, and all queues drain at once. The shutdown also waits for code that was asked to stop
//! before, for as long as its queue's settings say.

use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_core::{Name, Timestamp};

use crate::worker::Worker;
use crate::zombies::ShutdownWait;

/// A shutdown that has begun.
#[derive(Clone, Debug)]
pub struct Drain {
    began: Timestamp,
    stopping: BTreeSet<Name>,
    cut_off: BTreeSet<Name>,
}

/// A step of a shutdown, due at its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// The grace period of this queue is over: its attempts are asked to stop.
    AskToStop(Name),
    /// The force timeout of this queue is over: its attempts are left behind.
    CutOff(Name),
    /// The shutdown no longer waits for code that was asked to stop before it.
    StopWaiting,
}

impl Drain {
    /// Creates a shutdown that begins now.
    pub const fn new(now: Timestamp) -> Self {
        Self { began: now, stopping: BTreeSet::new(), cut_off: BTreeSet::new() }
    }

    /// Returns when the shutdown began.
    pub const fn began(&self) -> Timestamp {
        self.began
    }

    /// Returns the steps for a worker, and when each is due.
    pub fn steps(&self, worker: &Worker) -> [(Timestamp, DrainStep); 3] {
        let (queue, values) = (worker.queue(), worker.values());
        let asked = self.began.after(values.shutdown_grace_period);
        [
            (asked, DrainStep::AskToStop(queue.clone())),
            (asked.after(values.shutdown_force_timeout), DrainStep::CutOff(queue.clone())),
            (self.began.after(values.zombie_shutdown_timeout), DrainStep::StopWaiting),
        ]
    }

    /// Marks this queue: its attempts are asked to stop.
    pub fn ask_to_stop(&mut self, queue: &Name) {
        self.stopping.insert(queue.clone());
    }

    /// Marks this queue: its attempts are left behind.
    pub fn cut_off(&mut self, queue: &Name) {
        self.cut_off.insert(queue.clone());
    }

    /// Returns whether attempts of this queue have been asked to stop. A failure after that does not count against
    /// them.
    pub fn is_stopping(&self, queue: &Name) -> bool {
        self.stopping.contains(queue)
    }

    /// Returns whether the shutdown waits, at this time, for work that runs in any of these workers (`is_busy`) or was
    /// asked to stop before.
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
        workers.into_iter().any(|worker| matches!(worker.wait(self.began, now), ShutdownWait::Until(_)))
    }
}
