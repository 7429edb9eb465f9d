//! Cancellation: timeouts, shields, and futures that can be cancelled on their own.

use std::future::Future;
use std::time::Duration;

use dacapo_core::{CancelHandle, Cancellable, Cancelled, Shield, Timeout};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Limits a future to this time. A timeout is a failure of kind [`dacapo_core::TimeoutKind::Deadline`], and drops the
    /// future, which cancels it.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let receipt = ctx.with_timeout(mins(1), ctx.call(charge, order)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn with_timeout<F, T, E>(&self, duration: Duration, future: F) -> Timeout<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.raw.with_timeout(duration, future)
    }

    /// Awaits a future that no cancellation of the run reaches: for cleaning up.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn refund(order: String) -> Result<(), Failure> { Ok(()) }
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// if let Err(failure) = ctx.sleep(days(1)).await {
    ///     ctx.shield(ctx.call(refund, "order-42".into())).await?; // The run is cancelled, and this is done all the same.
    ///     return Err(failure.into());
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn shield<F: Future>(&self, future: F) -> Shield<F> {
        self.raw.shield(future)
    }

    /// Makes a future that can be cancelled on its own, and returns it with the handle that cancels it.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # const STOP: Signal<()> = Signal::new("stop");
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let (receipt, cancel) = ctx.cancellable(ctx.call(charge, order));
    /// let unit = ctx.clone();
    /// drop(ctx.launch(async move {
    ///     unit.next_signal(STOP).await?;
    ///     cancel.cancel("the customer has changed their mind");
    ///     Ok(())
    /// }));
    /// let receipt = receipt.await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn cancellable<F: Future>(&self, future: F) -> (Cancellable<F>, CancelHandle) {
        self.raw.cancellable(future)
    }

    /// Returns why the code that calls is cancelled, or none if it is not.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// while ctx.cancellation().is_none() {
    ///     ctx.shield(ctx.sleep(secs(10))).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn cancellation(&self) -> Option<Cancelled> {
        self.raw.cancellation()
    }
}
