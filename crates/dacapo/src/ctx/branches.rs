//! Concurrency: units of their own, and joins and races within one unit.

use std::future::Future;

use dacapo_core::{Entrants, Failure, Join, Launched, Parallel, Race, Scope, ScopePlay, SelectAll, TryJoin};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Runs many branches concurrently and returns all their outputs in order.
    ///
    /// Each branch is a unit of its own: a strand of the run's code, which other units do not hold up. Units of a run take turns, so
    /// no two run at the same moment. Every branch is played to its end, even if others fail. Dropping the future aborts the branches. To play only some at
    /// a time, add [`at_most`](Parallel::at_most): then a branch must be an `async` block, which schedules nothing before it
    /// is its turn.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx, orders: Vec<String>) -> Result<(), Failure> {
    /// let charges = orders.into_iter().map(|order| {
    ///     let ctx = ctx.clone();
    ///     async move { ctx.call(charge, order).await }
    /// });
    /// for receipt in ctx.parallel(charges).at_most(8).await {
    ///     println!("{}", receipt?);
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn parallel<I>(&self, branches: I) -> Parallel<<I::Item as Future>::Output>
    where
        I: IntoIterator,
        I::Item: Future + Send + 'static,
        <I::Item as Future>::Output: Send + 'static,
    {
        self.raw.parallel(branches)
    }

    /// Launches a unit: code of this run that goes on concurrently with the code that launched it. Await the result for its value.
    ///
    /// If the unit fails, the workflow function is cancelled and the run fails with that failure. If the workflow function
    /// returns first, the unit is aborted: await it, or use [`Ctx::scope`].
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx, order: String) -> Result<(), Failure> {
    /// let unit = ctx.clone();
    /// let receipt = ctx.launch(async move { unit.call(charge, order).await });
    /// ctx.sleep(secs(10)).await?;
    /// println!("{}", receipt.await?);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn launch<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Launched<T> {
        self.raw.launch(future)
    }

    /// Runs a closure that may launch units, and ends when the closure and all its units have ended: none is left behind.
    ///
    /// The first failure among them cancels the others and is the result of the scope.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let charged = ctx
    ///     .scope(async |scope| {
    ///         for order in ["a", "b"] {
    ///             let ctx = ctx.clone();
    ///             scope.launch(async move { ctx.call(charge, order.into()).await.map(drop) });
    ///         }
    ///         Ok(2)
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn scope<T, B, P>(&self, body: B) -> ScopePlay<P>
    where
        B: FnOnce(Scope) -> P,
        P: Future<Output = Result<T, Failure>>,
    {
        self.raw.scope(body)
    }

    /// Awaits all futures concurrently and returns their outputs in order, however they end. They may borrow, because they are part of the
    /// code that awaits them and no units of their own.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let receipts = ctx.join([ctx.call(charge, "a".into()), ctx.call(charge, "b".into())]).await;
    /// let failed = receipts.iter().filter(|receipt| receipt.is_err()).count();
    /// # Ok(()) }
    /// ```
    pub fn join<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> Join<F> {
        self.raw.join(futures)
    }

    /// Awaits all futures concurrently until one fails, and returns their values in order. The first failure drops the others, which
    /// cancels them. They may borrow, as in [`join`](Ctx::join).
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let receipts: Vec<String> = ctx.try_join(["a", "b"].map(|order| ctx.call(charge, order.into()))).await?;
    /// # Ok(()) }
    /// ```
    pub fn try_join<T, E, F>(&self, futures: impl IntoIterator<Item = F>) -> TryJoin<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.raw.try_join(futures)
    }

    /// Races two futures: the one whose result came first wins, whichever is listed first. The loser is dropped, which
    /// cancels it. [`Ctx::race_of`] races up to eight.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const GO: Signal<u64> = Signal::new("go");
    /// # async fn wait(ctx: Ctx) -> Result<u64, Failure> {
    /// match ctx.race(ctx.next_signal(GO), ctx.sleep(mins(5))).await? {
    ///     First(n) => Ok(n),
    ///     Second(()) => Err("no approval within five minutes".into()),
    /// }
    /// # }
    /// ```
    #[track_caller]
    pub fn race<A, B, X, Y, E, F>(&self, first: A, second: B) -> Race<A, B>
    where
        A: Future<Output = Result<X, E>>,
        B: Future<Output = Result<Y, F>>,
    {
        self.raw.race(first, second)
    }

    /// Races three to eight futures, given as a tuple: the one whose result came first wins, whichever is listed first. The
    /// others are dropped, which cancels them. The first result decides even if it is a failure.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # const REJECT: Signal<String> = Signal::new("reject");
    /// # async fn decide(ctx: Ctx) -> Result<bool, Failure> {
    /// match ctx.race_of((ctx.next_signal(APPROVE), ctx.next_signal(REJECT), ctx.sleep(days(7)))).await? {
    ///     OneOf3::First(_by) => Ok(true),
    ///     OneOf3::Second(_by) => Ok(false),
    ///     OneOf3::Third(()) => Err("there was no decision within a week".into()),
    /// }
    /// # }
    /// ```
    pub fn race_of<E: Entrants>(&self, entrants: E) -> E::Race {
        self.raw.race_of(entrants)
    }

    /// Races any number of futures of one type: returns the place of the winner, its output, and the race of the others.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let mut race = ctx.select_all(["a", "b", "c"].map(|order| ctx.call(charge, order.into())));
    /// while !race.is_empty() {
    ///     let (place, receipt, others) = race.await;
    ///     println!("{place}: {}", receipt?);
    ///     race = others; // Dropping it would cancel the others.
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn select_all<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> SelectAll<F> {
        self.raw.select_all(futures)
    }
}
