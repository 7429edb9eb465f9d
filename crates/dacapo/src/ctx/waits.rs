//! Timers, conditions, and the end of a step.

use std::time::Duration;

use dacapo_core::{Timer, WaitUntil, YieldNow};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Sleeps, for milliseconds or for months. The timer is stored, so it survives restarts.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.sleep(days(30)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Timer {
        self.raw.sleep(duration)
    }

    /// Waits until a condition holds. The condition only computes, and does not call the ctx.
    ///
    /// It is evaluated now, and again after every round in which a [cell](Ctx::cell) that it read was changed, so many units
    /// can wait for cells of their own at little cost. A condition that reads no cell may depend on anything that the
    /// workflow shares, and is evaluated after every round in which a unit ran. One that reads cells must depend on nothing
    /// else that changes: where runs are played twice, as in tests, breaking this fails the activation.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const ARRIVE: Signal<()> = Signal::new("arrive");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let arrived = ctx.cell(false);
    /// let door = arrived.clone();
    /// ctx.on_signal(ARRIVE, move |()| {
    ///     *door.lock() = true;
    ///     async { Ok(()) }
    /// });
    /// ctx.wait_until(move || arrived.read(|arrived| *arrived)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn wait_until(&self, condition: impl Fn() -> bool + Send + Sync + 'static) -> WaitUntil {
        self.raw.wait_until(condition)
    }

    /// Lets all other code of the run go on that can, and then goes on itself.
    pub fn yield_now(&self) -> YieldNow {
        self.raw.yield_now()
    }
}

impl<S: Send + 'static> Ctx<S> {
    /// Waits until a condition holds for the workflow's state. It is evaluated now, and again after every round in which the
    /// state was changed.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # struct Cart { items: u64 }
    /// # async fn example(ctx: Ctx<Cart>) -> Result<(), Failure> {
    /// ctx.wait_state(|cart| cart.items >= 3).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn wait_state(&self, condition: impl Fn(&S) -> bool + Send + Sync + 'static) -> WaitUntil {
        let state = self.state_cell().clone();
        self.raw.wait_until(move || state.read(&condition))
    }
}
