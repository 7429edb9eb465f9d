//! Bounded waits for what other threads do.

use std::time::{Duration, Instant};

/// Far longer than anything here takes, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the wait for something that does not come.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    since: Instant,
    what: &'static str,
}

impl Deadline {
    /// Begins to wait for this.
    pub(crate) fn of(what: &'static str) -> Self {
        Self { since: Instant::now(), what }
    }

    /// Panics if it took too long.
    #[track_caller]
    pub(crate) fn check(&self) {
        assert!(self.since.elapsed() < PATIENCE, "{} did not come within {PATIENCE:?}", self.what);
    }
}

/// Waits until this is so.
#[track_caller]
pub(crate) fn wait_until(what: &'static str, is_so: impl Fn() -> bool) {
    let deadline = Deadline::of(what);
    while !is_so() {
        deadline.check();
        std::thread::yield_now();
    }
}

/// Awaits this.
pub(crate) async fn in_time<T>(what: &'static str, awaited: impl Future<Output = T>) -> T {
    let Ok(value) = tokio::time::timeout(PATIENCE, awaited).await else {
        panic!("{what} did not come within {PATIENCE:?}");
    };
    value
}
