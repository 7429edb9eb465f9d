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

    /// Waits until the condition holds. It only computes, and does not call the ctx.
    ///
    /// It is evaluated now, and again after every round in which a [`dacapo_core::StateCell`] that it read was changed, so
    /// many units can wait for cells of their own at little cost. A condition that reads no cell may depend on anything that
    /// the workflow shares, and is evaluated after every round in which a unit ran. One that reads cells must depend on
    /// nothing else that changes: where runs are played twice, as in tests, breaking this fails the activation.
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
    /// Waits until the condition holds for the state. It is evaluated now, and again after every round in which the state
    /// was changed.
    #[track_caller]
    pub fn wait_state(&self, condition: impl Fn(&S) -> bool + Send + Sync + 'static) -> WaitUntil {
        let state = self.state_cell().clone();
        self.raw.wait_until(move || state.read(&condition))
    }
}
