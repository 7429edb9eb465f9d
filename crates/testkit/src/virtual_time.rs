//! Virtual time: a clock that a test moves, and the sleeps of fakes on it. It outlives the processes of a test.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use dacapo_core::Timestamp;
use parking_lot::Mutex;

/// The clock of a test.
pub(crate) struct VirtualTime(Mutex<State>);

struct State {
    now: Timestamp,
    /// How many fakes sleep until each moment.
    sleeps: BTreeMap<Timestamp, usize>,
    /// Whether an attempt of a fake has begun since this was last asked.
    fake_began: bool,
}

impl VirtualTime {
    pub(crate) fn starting_at(now: Timestamp) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { now, sleeps: BTreeMap::new(), fake_began: false })))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.lock().now
    }

    /// Moves time to this moment, if it is later than now.
    pub(crate) fn move_to(&self, at: Timestamp) {
        let mut state = self.0.lock();
        state.now = state.now.max(at);
    }

    /// Returns the next moment at which a fake wakes up. A sleep that is over needs no wake: the host polls every fake
    /// whenever time has moved.
    pub(crate) fn next_sleep(&self) -> Option<Timestamp> {
        let state = self.0.lock();
        let later = (Bound::Excluded(state.now), Bound::Unbounded);
        state.sleeps.range(later).next().map(|(until, _)| *until)
    }

    /// Sleeps for this much virtual time, counted from now.
    pub(crate) fn sleep(self: &Arc<Self>, time: Duration) -> Sleep {
        let mut state = self.0.lock();
        let until = state.now.after(time);
        *state.sleeps.entry(until).or_default() += 1;
        drop(state);
        Sleep { time: self.clone(), until }
    }

    /// Notes that the attempt that the host polls at this moment is one of a fake.
    pub(crate) fn begin_fake(&self) {
        self.0.lock().fake_began = true;
    }

    /// Returns whether an attempt of a fake has begun since the last call.
    pub(crate) fn take_begun_fake(&self) -> bool {
        std::mem::take(&mut self.0.lock().fake_began)
    }
}

/// A sleep of a fake, on virtual time.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    time: Arc<VirtualTime>,
    until: Timestamp,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        // No waker is kept: the host polls every fake whenever time has moved.
        if self.time.now() >= self.until { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut state = self.time.0.lock();
        if let Some(count) = state.sleeps.get_mut(&self.until) {
            *count -= 1;
            if *count == 0 {
                state.sleeps.remove(&self.until);
            }
        }
    }
}
