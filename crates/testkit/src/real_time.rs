//! Real time, for real activities in a kit: the runtime that their timers and sockets need, and the wait for them.

use std::sync::{Arc, OnceLock};
use std::task::Wake;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};

/// Returns the runtime of all kits. One thread of it serves timers and sockets; the kit polls the activities itself.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("dacapo-kit").enable_all();
        builder.build().expect("the kit's runtime can be started")
    })
}

/// The limit for real activities, and the wakes that come for them from other threads.
pub(crate) struct RealTime {
    /// How long the kit waits for one attempt.
    pub(crate) limit: Duration,
    woken: Mutex<bool>,
    condition: Condvar,
}

impl RealTime {
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self { limit, woken: Mutex::new(false), condition: Condvar::new() })
    }

    /// Returns whether a wake came since the last call.
    pub(crate) fn take_wake(&self) -> bool {
        std::mem::take(&mut *self.woken.lock())
    }

    /// Waits for a wake until this instant. Returns whether one came.
    pub(crate) fn wait_until(&self, end: Instant) -> bool {
        let mut woken = self.woken.lock();
        while !*woken {
            if self.condition.wait_until(&mut woken, end).timed_out() {
                break;
            }
        }
        std::mem::take(&mut *woken)
    }

    pub(crate) fn notify(&self) {
        *self.woken.lock() = true;
        self.condition.notify_all();
    }
}

impl Wake for RealTime {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}
