//! The time that all nodes of a store share: that of the store's clock, kept by this node's own between two looks at it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use dacapo_core::Timestamp;

/// How far this node's time may be from the common one before it follows.
const TOLERANCE: Duration = Duration::from_millis(50);

/// By how much the common time is ahead of this node's own. Zero where one process serves a store.
#[derive(Debug, Default)]
pub(crate) struct CommonTime {
    ahead: AtomicI64,
    /// The latest time that was given out, in nanoseconds.
    last: AtomicU64,
}

impl CommonTime {
    /// Returns the common time at a moment of this node's own. It never goes back: it stands still until the common time has
    /// come to where it is.
    pub(crate) fn at(&self, own: Timestamp) -> Timestamp {
        let ahead = self.ahead.load(Ordering::Acquire);
        if ahead == 0 {
            return own;
        }
        let now = own.0.saturating_add_signed(ahead);
        Timestamp(self.last.fetch_max(now, Ordering::AcqRel).max(now))
    }

    /// Follows the store's clock, which showed this moment between two moments of this node's own.
    pub(crate) fn follow(&self, common: Timestamp, (before, after): (Timestamp, Timestamp)) {
        let own = before.0 + (after.0.saturating_sub(before.0)) / 2;
        let ahead = common.0.cast_signed().saturating_sub(own.cast_signed());
        let known = self.ahead.load(Ordering::Acquire);
        if ahead.abs_diff(known) > TOLERANCE.as_nanos() as u64 {
            // The time that was given out so far came from the own clock alone.
            self.last.fetch_max(after.0.saturating_add_signed(known), Ordering::AcqRel);
            self.ahead.store(ahead, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_node_whose_clock_is_slow_follows_the_common_time_at_once() {
        let time = CommonTime::default();
        time.follow(at(5_000), (at(1_000), at(1_000)));
        assert_eq!(time.at(at(1_500)), at(5_500));
    }

    #[test]
    fn a_node_whose_clock_is_fast_waits_for_the_common_time_and_never_goes_back() {
        let time = CommonTime::default();
        assert_eq!(time.at(at(9_000)), at(9_000));
        time.follow(at(5_000), (at(9_000), at(9_000)));
        assert_eq!(time.at(at(9_100)), at(9_000));
        assert_eq!(time.at(at(13_500)), at(9_500));
    }

    #[test]
    fn small_differences_are_left_alone() {
        let time = CommonTime::default();
        time.follow(at(1_020), (at(1_000), at(1_000)));
        assert_eq!(time.at(at(1_000)), at(1_000));
    }
}
