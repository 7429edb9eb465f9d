//! Attempts of activities as tasks of the program's runtime. Each is kept until nothing of it runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dacapo_sync::{Mutex, ranks};
use tokio::runtime::Handle;

use crate::{Attempt, AttemptCode, AttemptHandle};

/// The attempts that run on a runtime.
#[derive(Clone)]
pub struct Attempts {
    runtime: Handle,
    running: Arc<Mutex<RunningAttempts>>,
}

#[derive(Default)]
struct RunningAttempts {
    last: u64,
    handles: BTreeMap<u64, AttemptHandle>,
}

impl Attempts {
    /// Creates the attempts of this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, running: Arc::new(Mutex::new(ranks::ATTEMPTS, RunningAttempts::default())) }
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

    /// Returns the number of attempts that run, with those that were given up on and still run.
    pub fn running(&self) -> usize {
        self.running.lock().handles.len()
    }

    /// Keeps the attempt's handle until nothing of the attempt runs.
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
