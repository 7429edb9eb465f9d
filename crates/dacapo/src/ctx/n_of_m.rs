//! The first `n` of many futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use dacapo_core::{Failure, SelectAll};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Awaits the first `n` of many futures to succeed, and returns their places and values in the order in which they came.
    ///
    /// The others are dropped, which cancels them. When so many have failed that `n` cannot be reached, the failure that made
    /// it so is the result. The futures may borrow.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let two = ctx.n_of_m(2, ["a", "b", "c"].map(|bank| ctx.call(charge, bank.into()))).await?;
    /// for (place, receipt) in two {
    ///     println!("{place}: {receipt}");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn n_of_m<T, E, F>(&self, n: usize, futures: impl IntoIterator<Item = F>) -> NOfM<F, T>
    where
        F: Future<Output = Result<T, E>>,
    {
        let race = self.raw.select_all(futures);
        NOfM { n, places: (0..race.len()).collect(), race: Some(race), values: Vec::new() }
    }
}

/// The first `n` of many futures: await it for their places and values.
#[must_use = "it does nothing unless it is awaited"]
pub struct NOfM<F: Future, T> {
    n: usize,
    /// The places of the futures that are still in the race.
    places: Vec<usize>,
    race: Option<SelectAll<F>>,
    values: Vec<(usize, T)>,
}

/// Values are never pinned, and a race pins its futures by itself.
impl<F: Future, T> Unpin for NOfM<F, T> {}

impl<F, T, E> Future for NOfM<F, T>
where
    F: Future<Output = Result<T, E>>,
    Failure: From<E>,
{
    type Output = Result<Vec<(usize, T)>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        while this.values.len() < this.n {
            let missing = this.n - this.values.len();
            let Some(race) = this.race.as_mut().filter(|_| missing <= this.places.len()) else {
                // Without the line of the code: a failure is recorded, and lines move.
                let (n, all) = (this.n, this.places.len());
                let message = format!("n_of_m of {all} futures cannot have {n} successes: ask for at most {all}");
                return Poll::Ready(Err(Failure::application(message)));
            };
            let (winner, output, others) = ready!(Pin::new(race).poll(cx));
            let place = this.places.remove(winner);
            match output {
                Ok(value) => this.values.push((place, value)),
                Err(error) if missing > this.places.len() => {
                    this.race = None;
                    return Poll::Ready(Err(error.into()));
                }
                Err(_) => {}
            }
            this.race = Some(others);
        }
        this.race = None;
        Poll::Ready(Ok(std::mem::take(&mut this.values)))
    }
}
