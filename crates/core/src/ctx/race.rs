//! Races: the first to be done wins, by ordinal and not by the order of polling.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use super::timer::Timer;
use crate::run::Shared;
use crate::{Cancelled, Ctx, Failure, FailureKind, Ordinal, TimeoutKind};

/// Which side of a race won, with what it won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first did.
    First(A),
    /// The second did.
    Second(B),
}

impl Ctx {
    /// Races two futures: the one whose result came first wins, whichever is listed first; a branch of several steps
    /// counts by the last result it took. The policy decides between equals. The loser is dropped, which cancels it; a
    /// result that came for it and was not needed to decide the race is left where it was.
    ///
    /// A race looks before it takes: within it, code that polls a future once and acts on "not ready" may be told so
    /// although a result is there.
    #[track_caller]
    pub fn race<A, B, X, Y, E, F>(&self, first: A, second: B) -> Race<A, B>
    where
        A: Future<Output = Result<X, E>>,
        B: Future<Output = Result<Y, F>>,
    {
        Race { shared: self.shared.clone(), first: Contender::new(first), second: Contender::new(second) }
    }

    /// Races any number of futures of one type: gives the place of the winner, its output, and the race of the others.
    #[track_caller]
    pub fn select_all<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> SelectAll<F> {
        let contenders = futures.into_iter().map(Contender::new).collect();
        SelectAll { shared: self.shared.clone(), contenders }
    }

    /// Gives a future this long. A timeout is a failure of kind [`TimeoutKind::Deadline`].
    #[track_caller]
    pub fn with_timeout<F, T, E>(&self, duration: Duration, future: F) -> Timeout<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        Timeout(self.race(future, self.sleep(duration)))
    }
}

/// One side of a race.
struct Contender<F: Future> {
    future: Option<Pin<Box<F>>>,
    output: Option<Box<F::Output>>,
    /// The latest result it has taken so far.
    latest: Option<Ordinal>,
}

impl<F: Future> Contender<F> {
    fn new(future: F) -> Self {
        Self { future: Some(Box::pin(future)), output: None, latest: None }
    }
}

trait Contend {
    /// Polls it. Says whether it is done.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;
    fn took(&mut self, result: Option<Ordinal>);
    fn latest(&self) -> Option<Ordinal>;
}

impl<F: Future> Contend for Contender<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(future) = &mut self.future else { return self.output.is_some() };
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
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

/// Decides a race, if it can be decided now. First every side is polled while results that are there are only looked
/// at; then, again and again, the side with the earliest result is polled as far as the next side's result, until no
/// other side could have been earlier. So a side that loses has taken nothing that came after the race was decided.
/// What came after a result that the unit is still to be shown waits for that one, for it may decide the race.
fn decide(shared: &Shared, sides: &mut [&mut dyn Contend], cx: &mut Context<'_>) -> Option<usize> {
    let outer = shared.enter_poll()?.is_peeking();
    let mut done: Vec<usize> = Vec::new();
    let mut ahead: BTreeSet<(Ordinal, usize)> = BTreeSet::new();
    for (place, side) in sides.iter_mut().enumerate() {
        let (is_done, seen) = poll_side(shared, *side, cx, true, None);
        match seen {
            _ if is_done => done.push(place),
            Some(seen) => drop(ahead.insert((seen, place))),
            None => {}
        }
    }
    // Within a race that is itself only looked at, nothing is taken.
    loop {
        if outer {
            break;
        }
        rouse(shared);
        let best = done.iter().map(|place| sides[*place].latest()).min();
        let Some((came, place)) = ahead.pop_first() else { break };
        if best.is_some_and(|best| best < Some(came)) {
            break;
        }
        let limits = [shared.enter_poll()?.earliest_hidden(), ahead.first().map(|(next, _)| *next), best.flatten()];
        let (is_done, seen) = poll_side(shared, sides[place], cx, false, limits.into_iter().flatten().min());
        match seen {
            _ if is_done => done.push(place),
            // One that still only looks at the same result waits for what is hidden.
            Some(seen) if seen != came => drop(ahead.insert((seen, place))),
            _ => {}
        }
    }
    let best = done.iter().map(|place| sides[*place].latest()).min()?;
    let mut equals: Vec<usize> = done.into_iter().filter(|place| sides[*place].latest() == best).collect();
    equals.sort();
    let pick = if equals.len() == 1 { 0 } else { shared.pick_branch(equals.len() as u32) };
    equals.get(pick as usize).copied()
}

/// Polls a side: results are only looked at, or taken as far as the horizon. Gives whether it is done, and the earliest
/// result it has looked at and left.
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

/// How results are treated while a side is polled. Put back when it is over, even if the side's code unwinds.
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
        let peeking = std::mem::replace(&mut look.peeking, peeking);
        let horizon = std::mem::replace(&mut look.horizon, horizon);
        let peeked = look.peeked.take();
        Some(Self { shared, peeking, horizon, peeked, consumed })
    }

    /// The earliest result that was looked at, and the latest that was taken.
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
        (look.peeking, look.horizon) = (self.peeking, self.horizon);
        // What an outer race sees of this one is the earliest of all sides.
        look.peeked = [self.peeked, look.peeked].into_iter().flatten().min();
    }
}

/// Wakes what was looked at, within this very step: a join polls only those of its futures that were woken, and has
/// just used those wakes up for a look.
fn rouse(shared: &Shared) {
    let Some(mut state) = shared.enter_poll() else { return };
    let look = state.look_mut();
    let wakers = std::mem::take(&mut look.wakers);
    if wakers.is_empty() {
        return;
    }
    look.rousing = true;
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
    shared.lock().look_mut().rousing = false;
}

/// Two futures in a race.
#[must_use = "a race does nothing unless it is awaited"]
pub struct Race<A: Future, B: Future> {
    shared: Arc<Shared>,
    first: Contender<A>,
    second: Contender<B>,
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
        let winner = decide(&race.shared, &mut [&mut race.first, &mut race.second], cx);
        match (winner, race.first.output.take(), race.second.output.take()) {
            (Some(0), Some(output), _) => Poll::Ready((*output).map(Either::First).map_err(Failure::from)),
            (Some(1), _, Some(output)) => Poll::Ready((*output).map(Either::Second).map_err(Failure::from)),
            _ => Poll::Pending,
        }
    }
}

/// Any number of futures in a race: await it for the place and output of the winner, and the race of the others.
#[must_use = "a race does nothing unless it is awaited"]
pub struct SelectAll<F: Future> {
    shared: Arc<Shared>,
    contenders: Vec<Contender<F>>,
}

impl<F: Future> SelectAll<F> {
    /// How many are left.
    pub fn len(&self) -> usize {
        self.contenders.len()
    }

    /// Whether none is left. Such a race never ends.
    pub fn is_empty(&self) -> bool {
        self.contenders.is_empty()
    }
}

impl<F: Future> Future for SelectAll<F> {
    type Output = (usize, F::Output, Self);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let race = &mut *self;
        let mut sides: Vec<&mut dyn Contend> = race.contenders.iter_mut().map(|side| side as _).collect();
        let Some(winner) = decide(&race.shared, &mut sides, cx) else { return Poll::Pending };
        let Some(output) = race.contenders[winner].output.take() else { return Poll::Pending };
        // One that was done beside the winner keeps what it came to.
        let mut contenders = std::mem::take(&mut race.contenders);
        contenders.remove(winner);
        Poll::Ready((winner, *output, Self { shared: race.shared.clone(), contenders }))
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
