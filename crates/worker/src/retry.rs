//! Retry policies: whether another attempt follows, and after which pause.

use std::time::Duration;

use dacapo_core::{Failure, Retry};

/// Returns the pause after a failed attempt; none if no other attempt follows.
pub fn pause_after(retry: &Retry, attempt: u32, failure: &Failure) -> Option<Duration> {
    let last = retry.attempts > 0 && attempt >= retry.attempts;
    let pointless = failure.non_retryable
        || failure.is_cancelled()
        || failure.type_name.as_ref().is_some_and(|name| retry.non_retryable.contains(name));
    if last || pointless {
        return None;
    }
    let seconds = retry.first_pause.as_secs_f64() * retry.factor.powi(attempt.saturating_sub(1).min(1 << 20) as i32);
    // A pause that no `Duration` can hold is longer than the longest.
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(retry.max_pause).min(retry.max_pause))
}
