//! Races: the first to be done wins, by ordinal and not by the order of polling.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use super::standings::{Standings, Tracking};
use super::timer::Timer;
use crate::run::Shared;
use crate::{Cancelled, Ctx, Failure, FailureKind, Ordinal, TimeoutKind};

/// The winner of a race, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first side won.
    First(A),
    /// The second side won.
    Second(B),
}

impl Ctx {
    /// Races two futures: the one whose result came first wins, whichever is listed first; a side of several steps
    /// counts by the last result it took. The policy decides between equals. The loser is dropped, which cancels it; a
    /// result that came for it and was not needed to decide the race is left where it was.
    ///
    /// A race peeks at results before it takes them: code within it that polls a future once and acts on "not ready"
    /// may get that answer although a result is there.
    #[track_caller]
    pub fn race<A, B, X, Y, E, F>(&self, first: A, second: B) -> Race<A, B>
    where
        A: Future<Output = Result<X, E>>,
        B: Future<Output = Result<Y, F>>,
    {
        let (first, second) = (Contender::new(first), Contender::new(second));
        Race { shared: self.shared.clone(), first, second, polls: 0, tracking: None }
    }

    /// Limits a future to this duration. A timeout is a failure of kind [`TimeoutKind::Deadline`].
    #[track_caller]
    pub fn with_timeout<F, T, E>(&self, duration: Duration, future: F) -> Timeout<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        Timeout(self.race(future, self.sleep(duration)))
    }
}

/// One side of a race.
pub(super) struct Contender<F: Future> {
    future: Option<Pin<Box<F>>>,
    output: Option<Box<F::Output>>,
    /// The latest result it has taken so far.
    latest: Option<Ordinal>,
    /// The waker it is polled with; if there is none, it is polled with the race's.
    waker: Option<Waker>,
}

impl<F: Future> Contender<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future: Some(Box::pin(future)), output: None, latest: None, waker: None }
    }

    /// Sets the waker that it is polled with from now on.
    pub(super) fn with_waker(mut self, waker: Waker) -> Self {
        self.waker = Some(waker);
        self
    }

    pub(super) fn is_pending(&self) -> bool {
        self.future.is_some()
    }

    /// Takes its output. Nothing is left of the side then.
    pub(super) fn leave(&mut self) -> Option<F::Output> {
        self.waker = None;
        self.output.take().map(|output| *output)
    }
}

pub(super) trait Contend {
    /// Polls it, and returns whether it is done.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;
    fn took(&mut self, result: Option<Ordinal>);
    fn latest(&self) -> Option<Ordinal>;
}

impl<F: Future> Contend for Contender<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(future) = &mut self.future else { return self.output.is_some() };
        let polled = match &self.waker {
            Some(waker) => future.as_mut().poll(&mut Context::from_waker(waker)),
            None => future.as_mut().poll(cx),
        };
        if let Poll::Ready(output) = polled {
            self.output = Some(Box::new(output));
            self.future = None;
        }
        self.output.is_some()
    }

    fn took(&mut self, result: Option<Ordinal>) {
        self.latest = self.latest.max(result);
    }

    fn latest(&self) -> Option<Ordinal> {
        self.latest
    }
}

/// The sides of a race, by place.
pub(super) trait Sides {
    fn side(&mut self, place: usize) -> &mut dyn Contend;
}

impl<A: Future, B: Future> Sides for (&mut Contender<A>, &mut Contender<B>) {
    fn side(&mut self, place: usize) -> &mut dyn Contend {
        if place == 0 { self.0 } else { self.1 }
    }
}

impl<F: Future> Sides for Vec<Contender<F>> {
    fn side(&mut self, place: usize) -> &mut dyn Contend {
        &mut self[place]
    }
}

/// Decides a race, if it can be decided now, and returns the winner's place. First the sides at `places` are polled
/// while results are only peeked at, not taken. Then the side with the earliest result is polled as far as the next
/// side's result, again and again, until no other side could have been earlier. So a side that loses has taken no
/// result that came after the race was decided. A result that came after one that the unit is still to be shown waits
/// for that one, because it may decide the race.
pub(super) fn decide(
    shared: &Shared,
    sides: &mut dyn Sides,
    standings: &mut Standings,
    places: impl IntoIterator<Item = usize>,
    cx: &mut Context<'_>,
) -> Option<usize> {
    let (is_peeking, is_inner) = shared.enter_poll().map(|state| (state.is_peeking(), state.is_within_race()))?;
    for place in places {
        let side = sides.side(place);
        let (is_done, seen) = poll_side(shared, side, cx, true, None);
        standings.note(place, side, is_done, seen);
    }
    // Within a race that an outer race only peeks at, no result is taken.
    if !is_peeking {
        take_results(shared, sides, standings, cx)?;
    }
    let winner = standings.pick(shared);
    if winner.is_none()
        && is_inner
        && let Some((came, _)) = standings.ahead.first()
    {
        // A race around this one has to know of the results that are left, including those peeked at in an earlier
        // poll.
        shared.enter_poll()?.peek(*came, cx.waker());
    }
    winner
}

/// Lets the sides take their results in the order in which those came, as long as that may change the winner.
fn take_results(shared: &Shared, sides: &mut dyn Sides, standings: &mut Standings, cx: &mut Context<'_>) -> Option<()> {
    let mut waiting = Vec::new();
    loop {
        wake_peeked(shared);
        let best = standings.best();
        let Some((came, place)) = standings.ahead.first().copied() else { break };
        let hidden = shared.enter_poll()?.earliest_hidden();
        if best.is_some_and(|best| best < Some(came)) || hidden.is_some_and(|hidden| hidden < came) {
            break;
        }
        standings.forget(place);
        let next = standings.ahead.first().map(|(next, _)| *next);
        let side = sides.side(place);
        let limit = [hidden, next, best.flatten()].into_iter().flatten().min();
        let (is_done, seen) = poll_side(shared, side, cx, false, limit);
        match seen {
            // A side that only peeks at the same result again would do so in every pass.
            Some(seen) if !is_done && seen == came => waiting.push((place, came)),
            seen => standings.note(place, side, is_done, seen),
        }
    }
    for (place, came) in waiting {
        standings.note(place, sides.side(place), false, Some(came));
    }
    Some(())
}

/// Polls a side: results are only peeked at, or taken as far as the horizon. Returns whether it is done, and the
/// earliest result it has peeked at and not taken.
fn poll_side(
    shared: &Shared,
    side: &mut dyn Contend,
    cx: &mut Context<'_>,
    peeking: bool,
    horizon: Option<Ordinal>,
) -> (bool, Option<Ordinal>) {
    let Some(looking) = Looking::begin(shared, peeking, horizon) else { return (false, None) };
    let is_done = side.poll(cx);
    let (seen, took) = looking.end();
    side.took(took);
    (is_done, seen)
}

/// A guard that sets how results are treated while a side is polled. Dropping it restores the state before, even if the
/// side's code unwinds.
struct Looking<'s> {
    shared: &'s Shared,
    peeking: bool,
    horizon: Option<Ordinal>,
    peeked: Option<Ordinal>,
    consumed: Option<Ordinal>,
}

impl<'s> Looking<'s> {
    fn begin(shared: &'s Shared, peeking: bool, horizon: Option<Ordinal>) -> Option<Self> {
        let mut state = shared.enter_poll()?;
        let consumed = state.consumed.take();
        let look = state.look_mut();
        look.depth += 1;
        let peeking = std::mem::replace(&mut look.peeking, peeking);
        let horizon = std::mem::replace(&mut look.horizon, horizon);
        let peeked = look.peeked.take();
        Some(Self { shared, peeking, horizon, peeked, consumed })
    }

    /// Returns the earliest result that was peeked at, and the latest that was taken.
    fn end(self) -> (Option<Ordinal>, Option<Ordinal>) {
        let mut state = self.shared.lock();
        (state.look_mut().peeked, state.consumed)
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.consumed = state.consumed.max(self.consumed);
        let look = state.look_mut();
        look.depth = look.depth.saturating_sub(1);
        (look.peeking, look.horizon) = (self.peeking, self.horizon);
        // An outer race sees the earliest result of all sides of this one.
        look.peeked = [self.peeked, look.peeked].into_iter().flatten().min();
    }
}

/// Wakes the futures whose results were peeked at, within the same step: a join polls only those of its futures that
/// were woken, and the peek has used up those wakes.
fn wake_peeked(shared: &Shared) {
    let Some(mut state) = shared.enter_poll() else { return };
    let look = state.look_mut();
    let wakers = std::mem::take(&mut look.wakers);
    if wakers.is_empty() {
        return;
    }
    look.wakes_peeked = true;
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
    shared.lock().look_mut().wakes_peeked = false;
}

/// Two futures in a race.
#[must_use = "a race does nothing unless it is awaited"]
pub struct Race<A: Future, B: Future> {
    shared: Arc<Shared>,
    first: Contender<A>,
    second: Contender<B>,
    polls: u8,
    /// Set once the race was polled `OFTEN` times: most races are not, and need no wakers of their own.
    tracking: Option<Box<Tracking>>,
}

/// The number of polls from which on a race polls only the sides that were woken.
const OFTEN: u8 = 4;

impl<A: Future, B: Future> Race<A, B> {
    /// Returns the place of the winner, if there is one now.
    fn decide(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        self.polls = self.polls.saturating_add(1);
        if self.polls == OFTEN {
            let tracking = Tracking::default();
            self.first.waker = Some(tracking.waker(&self.shared, 0));
            self.second.waker = Some(tracking.waker(&self.shared, 1));
            self.tracking = Some(Box::new(tracking));
        }
        let pending = [self.first.is_pending(), self.second.is_pending()];
        let mut sides = (&mut self.first, &mut self.second);
        match &mut self.tracking {
            None => decide(&self.shared, &mut sides, &mut Standings::default(), [0, 1], cx),
            Some(tracking) => {
                let places = tracking.places(&self.shared, cx, 2, |place| pending[place])?;
                decide(&self.shared, &mut sides, &mut tracking.standings, places, cx)
            }
        }
    }
}

impl<A, B, X, Y, E, F> Future for Race<A, B>
where
    A: Future<Output = Result<X, E>>,
    B: Future<Output = Result<Y, F>>,
    Failure: From<E> + From<F>,
{
    type Output = Result<Either<X, Y>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let race = &mut *self;
        let winner = race.decide(cx);
        match (winner, race.first.output.take(), race.second.output.take()) {
            (Some(0), Some(output), _) => Poll::Ready((*output).map(Either::First).map_err(Failure::from)),
            (Some(1), _, Some(output)) => Poll::Ready((*output).map(Either::Second).map_err(Failure::from)),
            _ => Poll::Pending,
        }
    }
}

/// A future with a deadline.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Timeout<F: Future>(Race<F, Timer>);

impl<F, T, E> Future for Timeout<F>
where
    F: Future<Output = Result<T, E>>,
    Failure: From<E> + From<Cancelled>,
{
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(cx))? {
            Either::First(value) => Ok(value),
            Either::Second(()) => Err(Failure::new(FailureKind::Timeout(TimeoutKind::Deadline), "the deadline passed")),
        })
    }
}
