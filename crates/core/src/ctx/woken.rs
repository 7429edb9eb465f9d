//! The futures within one future that were woken, so that only those are polled.

use std::task::Waker;

use crate::lock::Lock;

/// The futures that were woken since they were last taken, by place, and the waker of the future that polls them.
#[derive(Default)]
pub(crate) struct Woken {
    places: Lock<Vec<usize>>,
    parent: Lock<Option<Waker>>,
}

impl Woken {
    /// Takes the places of the futures that were woken, in order.
    pub(crate) fn take(&self) -> Vec<usize> {
        let mut places = std::mem::take(&mut *self.places.lock());
        places.sort();
        places.dedup();
        places
    }

    /// Sets the waker that is woken from now on.
    pub(crate) fn await_by(&self, waker: &Waker) {
        let mut parent = self.parent.lock();
        if !parent.as_ref().is_some_and(|parent| parent.will_wake(waker)) {
            *parent = Some(waker.clone());
        }
    }

    /// Notes that the future at this place is to be polled.
    pub(crate) fn push(&self, place: usize) {
        self.places.lock().push(place);
    }

    /// Wakes the future that polls them.
    pub(crate) fn wake_parent(&self) {
        let parent = self.parent.lock().clone();
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}
