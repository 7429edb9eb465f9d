//! Durations as people say them.

use std::time::Duration;

/// Returns a duration of so many milliseconds.
pub const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Returns a duration of so many seconds.
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Returns a duration of so many minutes.
pub const fn mins(n: u64) -> Duration {
    secs(n.saturating_mul(60))
}

/// Returns a duration of so many hours.
pub const fn hours(n: u64) -> Duration {
    mins(n.saturating_mul(60))
}

/// Returns a duration of so many days of 24 hours.
pub const fn days(n: u64) -> Duration {
    hours(n.saturating_mul(24))
}
