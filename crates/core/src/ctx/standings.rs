//! The state that a race keeps about its sides from one poll to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use super::race::Contend;
use super::woken::Woken;
use crate::Ordinal;
use crate::run::{ScopeId, Shared, UnitKey};

/// The progress of the sides of a race. A side that was not woken since its last poll keeps its standing, so that the
/// cost of a race of many follows from the number of events and not from the number of sides.
#[derive(Default)]
pub(super) struct Standings {
    /// Sides with a result that was peeked at and not taken, and when it came.
    pub(super) ahead: BTreeSet<(Ordinal, usize)>,
    /// The results of `ahead`, by place.
    seen: BTreeMap<usize, Ordinal>,
    /// Sides that are done, by the latest result they took.
    done: BTreeMap<Option<Ordinal>, BTreeSet<usize>>,
}

impl Standings {
    /// Records the result of polling a side.
    pub(super) fn note(&mut self, place: usize, side: &dyn Contend, is_done: bool, seen: Option<Ordinal>) {
        self.forget(place);
        if is_done {
            self.done.entry(side.latest()).or_default().insert(place);
        } else if let Some(seen) = seen {
            self.ahead.insert((seen, place));
            self.seen.insert(place, seen);
        }
    }

    pub(super) fn forget(&mut self, place: usize) {
        if let Some(seen) = self.seen.remove(&place) {
            self.ahead.remove(&(seen, place));
        }
    }

    /// Returns the latest result of the side that is done and took its last result before the others did.
    pub(super) fn best(&self) -> Option<Option<Ordinal>> {
        self.done.first_key_value().map(|(latest, _)| *latest)
    }

    /// Picks the winner, if a side is done: the policy decides between equals.
    pub(super) fn pick(&mut self, shared: &Shared) -> Option<usize> {
        let (latest, equals) = self.done.iter_mut().next()?;
        let latest = *latest;
        let pick = if equals.len() == 1 { 0 } else { shared.pick_branch(equals.len() as u32) };
        let winner = equals.iter().nth(pick as usize).copied()?;
        equals.remove(&winner);
        if equals.is_empty() {
            self.done.remove(&latest);
        }
        Some(winner)
    }
}

/// The standings of a race that polls only the sides that were woken.
#[derive(Default)]
pub(super) struct Tracking {
    pub(super) standings: Standings,
    woken: Arc<Woken>,
    /// The unit and the scope of the last poll: waits belong to both.
    polled_by: Option<(Option<UnitKey>, ScopeId)>,
}

impl Tracking {
    /// Returns the waker of the side at this place.
    pub(super) fn waker(&self, shared: &Arc<Shared>, place: usize) -> Waker {
        Waker::from(Arc::new(SideWaker { shared: shared.clone(), woken: self.woken.clone(), place }))
    }

    /// Returns the sides to poll: those that were woken, or all `sides` of them if the race moved to another unit or
    /// scope. `None` if the run is being torn down.
    pub(super) fn places(
        &mut self,
        shared: &Shared,
        cx: &Context<'_>,
        sides: usize,
        is_pending: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let here = shared.enter_poll().map(|state| (state.running, state.scope))?;
        self.woken.await_by(cx.waker());
        let mut places = self.woken.take();
        if self.polled_by.replace(here) != Some(here) {
            places = (0..sides).collect();
        }
        places.retain(|place| is_pending(*place));
        Some(places)
    }
}

/// The waker of one side of a race.
struct SideWaker {
    shared: Arc<Shared>,
    woken: Arc<Woken>,
    place: usize,
}

impl Wake for SideWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A side that was only peeked at is woken so that it can be polled to take that result. The race knows of it.
        if !self.shared.lock().is_waking_peeked() {
            self.woken.push(self.place);
        }
        self.woken.wake_parent();
    }
}
