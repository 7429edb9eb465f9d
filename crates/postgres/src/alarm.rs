//! The alarm of the keeper: other threads have it act before its time.

use std::sync::Arc;
use std::time::Instant;

use dacapo_sync::{Condvar, Mutex, ranks};

/// When the keeper acts next, and what it is to do then.
pub(crate) struct Alarm {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Default)]
struct AlarmState {
    /// The nodes or their shards have changed: look at them now.
    is_rung: bool,
    /// Notifications may have been lost: look for what they were about.
    looks: bool,
    is_closed: bool,
}

impl Alarm {
    pub(crate) fn new() -> Arc<Self> {
        let state = Mutex::new(ranks::STORE_PACE, AlarmState::default());
        Arc::new(Self { state, changed: Condvar::new() })
    }

    fn change(&self, change: impl FnOnce(&mut AlarmState)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// Has the nodes looked at now.
    pub(crate) fn ring(&self) {
        self.change(|state| state.is_rung = true);
    }

    /// Has everything looked for now of which no notice may have come.
    pub(crate) fn look(&self) {
        self.change(|state| (state.is_rung, state.looks) = (true, true));
    }

    pub(crate) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    /// Waits until this moment, or until something is to be done before. Returns whether something is to be looked for; none
    /// once it is closed.
    pub(crate) fn wait(&self, until: Instant) -> Option<bool> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if state.is_rung {
                state.is_rung = false;
                return Some(std::mem::take(&mut state.looks));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(false);
            }
            let _ = self.changed.wait_for(&mut state, left);
        }
    }
}
