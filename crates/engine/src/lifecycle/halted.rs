//! Whether the engine has stopped, and why.

use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_client::Error;
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{Level, meter};
use tokio::sync::Notify;

/// The reason why the engine has stopped, once it has.
pub(crate) struct Halted {
    /// Read with every piece of work.
    is_halted: AtomicBool,
    reason: Mutex<(Option<Error>, Level)>,
    notice: Notify,
}

impl Halted {
    pub(crate) fn new() -> Self {
        let reason = (None, meter::STOPPED.level(&[]));
        Self { is_halted: AtomicBool::new(false), reason: Mutex::new(ranks::HALTED, reason), notice: Notify::new() }
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Acquire)
    }

    pub(crate) fn reason(&self) -> Option<Error> {
        if self.is_halted() { self.reason.lock().0.clone() } else { None }
    }

    /// Waits until the engine has stopped.
    pub(crate) async fn notice(&self) {
        let stops = self.notice.notified();
        if !self.is_halted() {
            stops.await;
        }
    }

    /// Notes that the engine stops for this reason. False if it had stopped before.
    pub(crate) fn halt(&self, error: Error) -> bool {
        let mut reason = self.reason.lock();
        if reason.0.is_some() {
            return false;
        }
        if error != Error::ShutDown {
            reason.1.set(1);
        }
        reason.0 = Some(error);
        self.is_halted.store(true, Ordering::Release);
        drop(reason);
        self.notice.notify_waiters();
        true
    }
}
