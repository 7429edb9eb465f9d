//! `parallel`: branches that are units of their own, all at once or some at a time.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::branches::{Handover, UnitGroup};
use crate::lock::Lock;
use crate::options::CancelType;
use crate::run::{Shared, SlotId, Value, What};
use crate::{Ctx, Payload, Seg, ViolationKind};

impl Ctx {
    /// Plays each branch as a unit of its own, from the next round on, and returns all their outputs in order. Every
    /// branch is played to its end, even if others fail. Dropping the future aborts the branches.
    /// [`Parallel::at_most`] bounds how many are played at a time.
    #[track_caller]
    pub fn parallel<I>(&self, branches: I) -> Parallel<<I::Item as Future>::Output>
    where
        I: IntoIterator,
        I::Item: Future + Send + 'static,
        <I::Item as Future>::Output: Send + 'static,
    {
        let site = Location::caller();
        let before = self.shared.enter(site).map(|state| state.next_seq);
        // The iterator is user code: it runs before the lock is taken.
        let branches: Vec<I::Item> = branches.into_iter().collect();
        let outputs: Vec<_> = branches.iter().map(|_| Handover::new()).collect();
        let places = Arc::new(Lock::new(Places::unlimited()));
        let Some(mut state) = self.shared.enter(site) else {
            return Parallel { group: UnitGroup::inert(self.shared.clone()), outputs, places };
        };
        places.lock().scheduled_early = before.is_some_and(|before| state.next_seq > before);
        let mut group = UnitGroup::new(self.shared.clone(), &mut state, site);
        let scope = state.scope;
        for (branch, output) in branches.into_iter().zip(outputs.iter().cloned()) {
            let (shared, places) = (self.shared.clone(), places.clone());
            group.spawn(&mut state, Seg::P, scope, async move {
                let mut place = Place { shared, places, slot: SlotId::Never };
                poll_fn(|cx| place.poll_free(cx, site)).await;
                output.put(branch.await);
                place.hand_on();
                Ok(Payload::empty())
            });
        }
        drop(state);
        Parallel { group, outputs, places }
    }
}

/// Branches that are being played: await it for all their outputs.
#[must_use = "dropping it gives the branches up; await it"]
pub struct Parallel<T> {
    group: UnitGroup,
    outputs: Vec<Handover<T>>,
    places: Arc<Lock<Places>>,
}

impl<T> Parallel<T> {
    /// Plays at most so many branches at a time: the others begin in their order, each in the round after one has ended.
    ///
    /// It is called before the branches begin, in the step that called [`Ctx::parallel`]. A branch must schedule
    /// nothing before it is played, so it is written as `async move { ctx.activity(…).await }`: an operation that is
    /// scheduled while `parallel` takes the branch fails the activation, with this advice. One that was scheduled earlier
    /// and is only awaited in a branch is not held back.
    #[track_caller]
    pub fn at_most(self, most: usize) -> Self {
        let Some(state) = self.group.shared.enter(Location::caller()) else { return self };
        let mut places = self.places.lock();
        let misuse = match (most, places.has_begun, places.scheduled_early) {
            (0, ..) => Some("`at_most(0)` would play no branch; allow at least 1"),
            (_, true, _) => Some("the branches have begun; call `at_most` right after `parallel`"),
            (_, _, true) => Some(
                "`at_most` cannot hold these branches back: what they do was scheduled when they were created; \
                 write each as `async move { ctx.call(…).await }`, which schedules nothing before it is played",
            ),
            _ => None,
        };
        places.free = most;
        drop(places);
        if let Some(text) = misuse {
            self.group.shared.misuse(state, ViolationKind::Misuse(text.to_owned()));
        }
        drop(state);
        self
    }
}

impl<T> Future for Parallel<T> {
    type Output = Vec<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<T>> {
        match ready!(self.group.poll_done(cx)) {
            Ok(()) => Poll::Ready(self.outputs.iter().filter_map(Handover::take).collect()),
            // Only a future that was moved out of its run gets here, and there are no outputs for it.
            Err(_) => Poll::Pending,
        }
    }
}

/// The places in which branches are played.
struct Places {
    free: usize,
    /// The branches that wait for a place, in order.
    waiting: VecDeque<SlotId>,
    has_begun: bool,
    /// Whether creating the branches scheduled an operation.
    scheduled_early: bool,
}

impl Places {
    fn unlimited() -> Self {
        Self { free: usize::MAX, waiting: VecDeque::new(), has_begun: false, scheduled_early: false }
    }
}

/// One branch's wait for a place. It is a wait of the run, so that an inspection shows it.
struct Place {
    shared: Arc<Shared>,
    places: Arc<Lock<Places>>,
    slot: SlotId,
}

impl Place {
    fn poll_free(&mut self, cx: &mut Context<'_>, site: &'static Location<'static>) -> Poll<()> {
        let Some(mut state) = self.shared.enter_poll() else { return Poll::Pending };
        if self.slot == SlotId::Never {
            let mut places = self.places.lock();
            places.has_begun = true;
            if let Some(left) = places.free.checked_sub(1) {
                places.free = left;
                return Poll::Ready(());
            }
            self.slot = state.open_wait(What::Units, site);
            if let Some(slot) = state.slots.get_mut(&self.slot) {
                // A cancelled branch is still played, when its turn comes: its own waits fail then, and it cleans up.
                slot.cancel = CancelType::WaitCompleted;
            }
            places.waiting.push_back(self.slot);
        }
        let (polled, waker) = state.poll_slot(self.slot, cx.waker());
        drop(state);
        drop(waker);
        polled.into_poll().map(|_| self.slot = SlotId::Never)
    }

    /// Gives the place to the next branch that waits.
    fn hand_on(self) {
        let Some(mut state) = self.shared.enter_poll() else { return };
        let mut places = self.places.lock();
        match places.waiting.pop_front() {
            Some(next) => {
                let ordinal = state.next_ordinal();
                state.deliver(next, ordinal, Value::Done);
            }
            None => places.free += 1,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.slot != SlotId::Never {
            self.shared.leave(self.slot);
        }
    }
}
