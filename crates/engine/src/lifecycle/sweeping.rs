//! The removal of what deleted runs leave: whether it goes on, and whether there is more.

use std::sync::atomic::{AtomicBool, Ordering};

/// How the removal of what deleted runs leave stands.
#[derive(Debug, Default)]
pub(crate) struct Sweeping {
    /// A sweep goes on: one at a time, however many runs were deleted.
    is_on: AtomicBool,
    /// Runs were deleted since the last step began, which it may not have seen.
    is_wanted: AtomicBool,
    /// More runs are too old than one write deletes.
    is_behind: AtomicBool,
}

impl Sweeping {
    /// Runs were deleted. Says whether a sweep has to begin.
    pub(crate) fn want(&self) -> bool {
        self.is_wanted.store(true, Ordering::SeqCst);
        !self.is_on.swap(true, Ordering::SeqCst)
    }

    /// A step begins.
    pub(crate) fn begin_step(&self) {
        self.is_wanted.store(false, Ordering::SeqCst);
    }

    /// A step found nothing more. Says whether runs were deleted since it began, of which it saw nothing.
    pub(crate) fn end(&self) -> bool {
        self.is_on.store(false, Ordering::SeqCst);
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Whether runs become too old faster than they are deleted.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    pub(crate) fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }
}
