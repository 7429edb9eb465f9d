//! Whether something is tried again, and after which pause.

use std::time::Duration;

use dacapo_core::{Failure, Retry};

/// How long to wait after a failed attempt; none if it was the last.
pub(crate) fn pause_after(retry: &Retry, attempt: u32, failure: &Failure) -> Option<Duration> {
    let last = retry.attempts > 0 && attempt >= retry.attempts;
    let pointless = failure.non_retryable
        || failure.is_cancelled()
        || failure.type_name.as_ref().is_some_and(|name| retry.not_retryable.contains(name));
    if last || pointless {
        return None;
    }
    let longest = retry.longest.as_secs_f64();
    let seconds = retry.initial.as_secs_f64() * retry.factor.powi(attempt.saturating_sub(1).min(1 << 20) as i32);
    Some(Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, longest) } else { longest }))
}
