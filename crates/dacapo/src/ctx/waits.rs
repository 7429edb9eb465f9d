//! Timers, conditions, and the end of a step.

use std::time::Duration;

use dacapo_core::{Timer, WaitUntil, YieldNow};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Sleeps, for milliseconds or for months.
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Timer {
        self.raw.sleep(duration)
    }

    /// Waits until the condition holds. It is looked at now, and again after every round in which something ran. It only
    /// computes: it may read a [`dacapo_core::StateCell`] or anything else the workflow shares, and not call the ctx.
    #[track_caller]
    pub fn wait_until(&self, condition: impl Fn() -> bool + Send + Sync + 'static) -> WaitUntil {
        self.raw.wait_until(condition)
    }

    /// Ends the unit's step; it goes on in the next round.
    pub fn yield_now(&self) -> YieldNow {
        self.raw.yield_now()
    }
}

impl<S: Send + 'static> Ctx<S> {
    /// Waits until the condition holds for the state.
    #[track_caller]
    pub fn wait_state(&self, condition: impl Fn(&S) -> bool + Send + Sync + 'static) -> WaitUntil {
        let state = self.state_cell().clone();
        self.raw.wait_until(move || state.read(&condition))
    }
}
