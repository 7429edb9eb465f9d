//! The limits of crash counts.

use std::time::Duration;

use dacapo_core::Timestamp;

/// The crash counts from which on an activity or a run is delayed or quarantined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashLimits {
    /// The crash count from which on it is delayed; 0 for never.
    pub delay_after: u32,
    /// The first delay. It doubles with every further death.
    pub first_delay: Duration,
    /// The longest delay.
    pub longest_delay: Duration,
    /// The crash count from which on it is quarantined until it is released; 0 for never.
    pub quarantine_after: u32,
}

impl Default for CrashLimits {
    fn default() -> Self {
        Self {
            delay_after: 3,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(600),
            quarantine_after: 20,
        }
    }
}

impl CrashLimits {
    /// Whether this crash count leads to quarantine.
    pub(crate) const fn quarantines(&self, crash_count: u32) -> bool {
        self.quarantine_after > 0 && crash_count >= self.quarantine_after
    }

    /// The delay for this crash count; none if it is not delayed.
    pub(crate) fn delay(&self, crash_count: u32) -> Option<Duration> {
        if self.delay_after == 0 || crash_count < self.delay_after {
            return None;
        }
        let doublings = (crash_count - self.delay_after).min(31);
        Some(self.first_delay.saturating_mul(1 << doublings).min(self.longest_delay))
    }

    /// The end of the delay in a process that opened the store at `opened`.
    pub(crate) fn delayed_until(&self, crash_count: u32, opened: Timestamp) -> Option<Timestamp> {
        self.delay(crash_count).map(|delay| opened.after(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_begins_with_the_third_death_and_doubles_up_to_ten_minutes() {
        let limits = CrashLimits::default();
        let delays: Vec<Option<u64>> =
            [2, 3, 4, 6, 12, 13, 19].iter().map(|count| limits.delay(*count).map(|delay| delay.as_secs())).collect();
        assert_eq!(delays, [None, Some(1), Some(2), Some(8), Some(512), Some(600), Some(600)]);
        assert_eq!((limits.quarantines(19), limits.quarantines(20)), (false, true));
    }

    #[test]
    fn a_limit_of_zero_is_off() {
        let off = CrashLimits { delay_after: 0, quarantine_after: 0, ..CrashLimits::default() };
        assert_eq!((off.delay(1_000), off.quarantines(1_000)), (None, false));
    }
}
