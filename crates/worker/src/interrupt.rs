//! Code that can be asked to stop: an attempt of an activity, or a turn of a run. No thread is ever killed.

use std::sync::OnceLock;

use dacapo_core::Watch;

use crate::AttemptHandle;

/// Code that can be asked to stop.
pub trait Interrupt: Send + Sync {
    /// Tells the code that it is cancelled.
    fn cancel(&self, reason: &str);
    /// Stops the code wherever it can be stopped. Can be called again.
    fn interrupt(&self);
    /// Describes where the code is, as far as is known.
    fn place(&self) -> String;
}

impl Interrupt for AttemptHandle {
    fn cancel(&self, reason: &str) {
        Self::cancel(self, reason);
    }

    fn interrupt(&self) {
        Self::interrupt(self);
    }

    fn place(&self) -> String {
        Self::place(self)
    }
}

/// A turn that is being played. Later turns of the run are not affected.
#[derive(Clone, Debug)]
pub struct StuckTurn {
    watch: Watch,
    turn: u64,
    /// The first reason to stop. An interrupt must not replace it.
    reason: OnceLock<String>,
}

impl StuckTurn {
    /// Returns the turn that this run is playing.
    pub fn new(watch: Watch) -> Self {
        let turn = watch.turn();
        Self { watch, turn, reason: OnceLock::new() }
    }

    fn stop(&self, reason: &str) {
        if self.watch.turn() == self.turn {
            self.watch.interrupt(reason);
        }
    }
}

/// A turn has no clean-up of its own: it fails at its next call, and another thread plays it again.
impl Interrupt for StuckTurn {
    fn cancel(&self, reason: &str) {
        self.stop(self.reason.get_or_init(|| reason.to_owned()));
    }

    fn interrupt(&self) {
        self.stop(self.reason.get().map_or("the turn is not wanted any more", String::as_str));
    }

    fn place(&self) -> String {
        let unit = self.watch.running().map_or_else(|| "between units".to_owned(), |unit| unit.named().to_string());
        let site = self.watch.site().map_or_else(|| "no call yet".to_owned(), |site| format!("last call at {site}"));
        format!("turn {}, {unit}, {site}", self.turn)
    }
}
