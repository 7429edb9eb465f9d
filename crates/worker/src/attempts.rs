//! Attempts of activities, as tasks of the program's runtime, under one roof: each ends by itself, and is held on
//! to until it has.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use crate::{Attempt, AttemptCode, Grip};

/// Runs attempts on a runtime.
#[derive(Clone)]
pub struct Attempts {
    runtime: Handle,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    last: u64,
    grips: BTreeMap<u64, Grip>,
}

impl Attempts {
    /// Attempts on this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, running: Arc::default() }
    }

    /// Starts an attempt.
    pub fn start(&self, attempt: Attempt) {
        let (code, grip) = attempt.into_parts();
        self.keep(&grip);
        let told = grip.clone();
        let task = match code {
            AttemptCode::Async(future) => self.runtime.spawn(async move { told.finish(future.await) }),
            AttemptCode::Blocking(call) => self.runtime.spawn_blocking(move || told.finish(call())),
        };
        grip.runs_as(task.abort_handle());
    }

    /// How many attempts run, with those that were given up on and run on all the same.
    pub fn running(&self) -> usize {
        lock(&self.running).grips.len()
    }

    /// Holds on to the attempt until nothing of it runs.
    fn keep(&self, grip: &Grip) {
        let mut running = lock(&self.running);
        running.last += 1;
        let no = running.last;
        running.grips.insert(no, grip.clone());
        drop(running);
        let running = Arc::downgrade(&self.running);
        grip.on_end(move || {
            let gone = running.upgrade().and_then(|running| lock(&running).grips.remove(&no));
            drop(gone);
        });
    }
}

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempts").field("running", &self.running()).finish_non_exhaustive()
    }
}
