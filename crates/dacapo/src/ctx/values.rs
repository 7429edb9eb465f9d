//! Values that need no waiting: time, randomness, facts about the run, patches.

use dacapo_core::{Info, Name, OperationId, Timestamp};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Returns the time of this turn. It stands still while the turn is played, never goes back, and is the same on replay.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const GO: Signal<()> = Signal::new("go");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let began = ctx.now();
    /// ctx.next_signal(GO).await?;
    /// println!("waited for {:?}", ctx.now().since(began));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn now(&self) -> Timestamp {
        self.raw.now()
    }

    /// Returns facts about the run: its ids, its queue, the length of its history. Code must not decide by [`Info::replaying`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let key = format!("{}-invoice", ctx.info().start.workflow_id);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn info(&self) -> Info {
        self.raw.info().unwrap_or_default()
    }

    /// Returns a random number from 0 up to, but not including, 1. It is the same on every replay.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// ctx.sleep(secs(60).mul_f64(ctx.random())).await?; // Spreads runs that start together.
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn random(&self) -> f64 {
        self.raw.random()
    }

    /// Returns 64 random bits, the same on every replay. Each unit has a stream of its own.
    #[track_caller]
    pub fn random_u64(&self) -> u64 {
        self.raw.random_u64()
    }

    /// Returns a random UUID, the same on every replay.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let coupon = ctx.uuid().to_string();
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn uuid(&self) -> OperationId {
        self.raw.uuid()
    }

    /// Picks one of `n` branches, from 0; those not picked never start. The policy decides: the deterministic one takes the
    /// first, a random one explores, and whatever it picked is recorded and replayed.
    #[doc(hidden)]
    #[track_caller]
    pub fn choose(&self, n: u32) -> u32 {
        self.raw.choose(n)
    }

    /// Returns whether to take the path that this patch introduces: for changing the code of open runs.
    ///
    /// It is true for runs that reach it for the first time, and on replay for those that took the new path; false for runs
    /// that went past this place before. The first answer holds for the whole run.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn screen(order: String) -> Result<(), Failure> { Ok(()) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// if ctx.patched("screen-orders") {
    ///     ctx.call(screen, order).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn patched(&self, id: impl Into<Name>) -> bool {
        self.raw.patched(id)
    }

    /// Says that the path before this patch is gone from the code, once no open run needs it.
    ///
    /// When no run is left that recorded the patch, this call can be removed too: removing it shifts nothing.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn screen(order: String) -> Result<(), Failure> { Ok(()) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// ctx.deprecate_patch("screen-orders");
    /// ctx.call(screen, order).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn deprecate_patch(&self, id: impl Into<Name>) {
        self.raw.deprecate_patch(id);
    }
}
