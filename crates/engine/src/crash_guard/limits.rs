//! What a process that dies again and again leads to.

use std::time::Duration;

use dacapo_core::Timestamp;

/// When an activity or a run whose process died while its code ran is delayed, and when it is not tried any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashLimits {
    /// From so many deaths on it is delayed; 0 for never.
    pub delay_after: u32,
    /// The first delay. It doubles with every further death.
    pub first_delay: Duration,
    /// The longest delay.
    pub longest_delay: Duration,
    /// After so many deaths it is quarantined until it is released; 0 for never.
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
    /// Whether so many deaths are too many.
    pub(crate) const fn quarantines(&self, crash_count: u32) -> bool {
        self.quarantine_after > 0 && crash_count >= self.quarantine_after
    }

    /// How long it is delayed after so many deaths; none if it is not.
    pub(crate) fn delay(&self, crash_count: u32) -> Option<Duration> {
        if self.delay_after == 0 || crash_count < self.delay_after {
            return None;
        }
        let doublings = (crash_count - self.delay_after).min(31);
        Some(self.first_delay.saturating_mul(1 << doublings).min(self.longest_delay))
    }

    /// Until when it is delayed in a process that opened the store then.
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
