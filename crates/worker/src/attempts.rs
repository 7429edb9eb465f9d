//! Attempts of activities, as tasks of the program's runtime, under one roof: each ends by itself, and is held on
//! to until it has.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dacapo_sync::{Mutex, ranks};
use tokio::runtime::Handle;

use crate::{Attempt, AttemptCode, AttemptHandle};

/// Runs attempts on a runtime.
#[derive(Clone)]
pub struct Attempts {
    runtime: Handle,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    last: u64,
    handles: BTreeMap<u64, AttemptHandle>,
}

impl Attempts {
    /// Attempts on this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, running: Arc::new(Mutex::new(ranks::ATTEMPTS, Running::default())) }
    }

    /// Starts an attempt.
    pub fn start(&self, attempt: Attempt) {
        let (code, handle) = attempt.into_parts();
        self.keep(&handle);
        let told = handle.clone();
        let task = match code {
            AttemptCode::Async(future) => self.runtime.spawn(async move { told.finish(future.await) }),
            AttemptCode::Blocking(call) => self.runtime.spawn_blocking(move || told.finish(call())),
        };
        handle.runs_as(task.abort_handle());
    }

    /// How many attempts run, with those that were given up on and run on all the same.
    pub fn running(&self) -> usize {
        self.running.lock().handles.len()
    }

    /// Holds on to the attempt until nothing of it runs.
    fn keep(&self, handle: &AttemptHandle) {
        let mut running = self.running.lock();
        running.last += 1;
        let no = running.last;
        running.handles.insert(no, handle.clone());
        drop(running);
        let running = Arc::downgrade(&self.running);
        handle.on_end(move || {
            let gone = running.upgrade().and_then(|running| running.lock().handles.remove(&no));
            drop(gone);
        });
    }
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempts").field("running", &self.running()).finish_non_exhaustive()
    }
}
