//! The removal of rows that deleted runs leave: whether it goes on, and whether there is more.

use std::sync::atomic::{AtomicBool, Ordering};

/// The state of the removal of rows that deleted runs leave.
#[derive(Debug, Default)]
pub(crate) struct Sweeping {
    /// Whether a sweep goes on: one at a time, however many runs were deleted.
    is_on: AtomicBool,
    /// Whether runs were deleted since the last step began, which that step may not have seen.
    is_wanted: AtomicBool,
    /// Whether more runs are too old than one write deletes.
    is_behind: AtomicBool,
}

impl Sweeping {
    /// Notes that runs were deleted. Returns whether a sweep has to begin.
    pub(crate) fn want(&self) -> bool {
        self.is_wanted.store(true, Ordering::SeqCst);
        !self.is_on.swap(true, Ordering::SeqCst)
    }

    /// Begins a step.
    pub(crate) fn begin_step(&self) {
        self.is_wanted.store(false, Ordering::SeqCst);
    }

    /// Ends a sweep whose last step found nothing more. Returns whether runs were deleted since that step began.
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
