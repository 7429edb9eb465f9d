//! Many things at once: units of their own, and joins and races within one unit.

use std::future::Future;

use dacapo_core::{Entrants, Failure, Join, Launched, Parallel, Race, Scope, ScopePlay, SelectAll, TryJoin};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Plays each branch as a unit of its own, from the next round on, and gives all their outputs in order. Every branch
    /// is played to its end, whatever becomes of the others. Dropping it gives the branches up.
    #[track_caller]
    pub fn parallel<I>(&self, branches: I) -> Parallel<<I::Item as Future>::Output>
    where
        I: IntoIterator,
        I::Item: Future + Send + 'static,
        <I::Item as Future>::Output: Send + 'static,
    {
        self.raw.parallel(branches)
    }

    /// Launches a unit that goes on beside this one. If it fails, the workflow function is cancelled and the run fails
    /// with its failure. If the workflow function returns first, it is given up: await it, or use [`Ctx::scope`].
    #[track_caller]
    pub fn launch<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Launched<T> {
        self.raw.launch(future)
    }

    /// Plays a body that may launch units into its scope. The scope ends when the body and all its units have; the first
    /// failure among them cancels the others and is the scope's own.
    #[track_caller]
    pub fn scope<T, B, P>(&self, body: B) -> ScopePlay<P>
    where
        B: FnOnce(Scope) -> P,
        P: Future<Output = Result<T, Failure>>,
    {
        self.raw.scope(body)
    }

    /// Awaits all futures and gives their outputs in order, however they end. They may borrow.
    pub fn join<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> Join<F> {
        self.raw.join(futures)
    }

    /// Awaits all futures until one fails: then the others are dropped, which cancels them. They may borrow.
    pub fn try_join<T, E, F>(&self, futures: impl IntoIterator<Item = F>) -> TryJoin<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.raw.try_join(futures)
    }

    /// Races two futures: the one whose result came first wins, whichever is listed first. The loser is dropped, which
    /// cancels it.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const GO: Signal<u64> = Signal::new("go");
    /// # async fn wait(ctx: Ctx) -> Result<u64, Failure> {
    /// match ctx.race(ctx.next_signal(GO), ctx.sleep(mins(5))).await? {
    ///     First(n) => Ok(n),
    ///     Second(()) => Err("no approval within a day".into()),
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

    /// Races any number of futures of one type: gives the place of the winner, its output, and the race of the others.
    #[track_caller]
    pub fn select_all<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> SelectAll<F> {
        self.raw.select_all(futures)
    }
}
