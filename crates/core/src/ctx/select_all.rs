//! Races of many futures: only the sides that were woken are polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::race::{Contender, decide};
use super::standings::Tracking;
use crate::Ctx;
use crate::run::Shared;

impl Ctx {
    /// Races any number of futures of one type: returns the place of the winner, its output, and the race of the
    /// others.
    ///
    /// A future is polled when it is woken, and not because another one was, so taking the winners of a large race one
    /// after the other costs as much as the futures themselves.
    #[track_caller]
    pub fn select_all<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> SelectAll<F> {
        let tracking = Tracking::default();
        let waker = |place| tracking.waker(&self.shared, place);
        let contender = |(place, future)| Contender::new(future).with_waker(waker(place));
        let contenders: Vec<Contender<F>> = futures.into_iter().enumerate().map(contender).collect();
        let (left, ranks) = (contenders.len(), Ranks::new(contenders.len()));
        let field = Field { contenders, left, ranks, tracking };
        SelectAll { shared: self.shared.clone(), field }
    }
}

/// Any number of futures in a race: await it for the place and output of the winner, and the race of the others.
#[must_use = "a race does nothing unless it is awaited"]
pub struct SelectAll<F: Future> {
    shared: Arc<Shared>,
    field: Field<F>,
}

/// All sides of a race of many. Those that won keep their place here, and are left out when places are counted.
struct Field<F: Future> {
    contenders: Vec<Contender<F>>,
    left: usize,
    ranks: Ranks,
    tracking: Tracking,
}

impl<F: Future> Default for Field<F> {
    fn default() -> Self {
        Self { contenders: Vec::new(), left: 0, ranks: Ranks::new(0), tracking: Tracking::default() }
    }
}

impl<F: Future> Field<F> {
    /// Returns the place of the winner, if there is one now.
    fn decide(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Option<usize> {
        let Self { contenders, tracking, .. } = self;
        let places = tracking.places(shared, cx, contenders.len(), |place| contenders[place].is_pending())?;
        decide(shared, contenders, &mut tracking.standings, places, cx)
    }
}

impl<F: Future> SelectAll<F> {
    /// Returns how many futures are left.
    pub fn len(&self) -> usize {
        self.field.left
    }

    /// Returns whether no future is left. Such a race never ends.
    pub fn is_empty(&self) -> bool {
        self.field.left == 0
    }
}

impl<F: Future> Future for SelectAll<F> {
    type Output = (usize, F::Output, Self);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let race = &mut *self;
        let Some(winner) = race.field.decide(&race.shared, cx) else { return Poll::Pending };
        let field = &mut race.field;
        let Some(output) = field.contenders[winner].leave() else { return Poll::Pending };
        let place = field.ranks.remove(winner);
        field.left -= 1;
        // A side that was done besides the winner keeps its output.
        let field = std::mem::take(field);
        Poll::Ready((place, output, Self { shared: race.shared.clone(), field }))
    }
}

/// A count of the sides left before each place: a Fenwick tree, so that neither counting nor removing visits all of
/// them.
struct Ranks(Vec<usize>);

impl Ranks {
    fn new(sides: usize) -> Self {
        Self((0..=sides).map(|node| node & node.wrapping_neg()).collect())
    }

    /// Removes a side, and returns how many before it are left.
    fn remove(&mut self, place: usize) -> usize {
        let mut before = 0;
        let mut node = place;
        while node > 0 {
            before += self.0[node];
            node -= node & node.wrapping_neg();
        }
        let mut node = place + 1;
        while node < self.0.len() {
            self.0[node] -= 1;
            node += node & node.wrapping_neg();
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::Ranks;

    #[test]
    fn ranks_count_the_sides_left_before_each_place() {
        for sides in 1..40 {
            let mut ranks = Ranks::new(sides);
            let mut left: Vec<usize> = (0..sides).collect();
            let mut next = 7;
            while !left.is_empty() {
                next = (next * 31 + 11) % left.len();
                let place = left.remove(next);
                assert_eq!(ranks.remove(place), next, "{place} of {sides}");
            }
        }
    }
}
