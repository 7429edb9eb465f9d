//! Cancellation: what can be cancelled by itself, what nothing cancels, and what has its time.

use std::future::Future;
use std::time::Duration;

use dacapo_core::{CancelHandle, Cancellable, Cancelled, Shield, Timeout};

use crate::Ctx;

impl<S> Ctx<S> {
    /// Gives a future this long. A timeout is a failure of kind [`dacapo_core::TimeoutKind::Deadline`].
    #[track_caller]
    pub fn with_timeout<F, T, E>(&self, duration: Duration, future: F) -> Timeout<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.raw.with_timeout(duration, future)
    }

    /// Plays a future that no cancellation reaches: for cleaning up.
    #[track_caller]
    pub fn shield<F: Future>(&self, future: F) -> Shield<F> {
        self.raw.shield(future)
    }

    /// Makes a future that can be cancelled by itself, and the handle that does it.
    #[track_caller]
    pub fn cancellable<F: Future>(&self, future: F) -> (Cancellable<F>, CancelHandle) {
        self.raw.cancellable(future)
    }

    /// Whether what the running unit does now has been cancelled.
    #[track_caller]
    pub fn cancellation(&self) -> Option<Cancelled> {
        self.raw.cancelled()
    }
}
