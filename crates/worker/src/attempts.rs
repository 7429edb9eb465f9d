//! Attempts of activities, as tasks of the program's runtime.

use tokio::runtime::Handle;

use crate::{Attempt, AttemptCode};

/// Runs attempts on a runtime.
#[derive(Clone, Debug)]
pub struct Attempts {
    runtime: Handle,
}

impl Attempts {
    /// Attempts on this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime }
    }

    /// Starts an attempt.
    pub fn start(&self, attempt: Attempt) {
        let (code, grip) = attempt.into_parts();
        let told = grip.clone();
        let task = match code {
            AttemptCode::Async(future) => self.runtime.spawn(async move { told.finish(future.await) }),
            AttemptCode::Blocking(call) => self.runtime.spawn_blocking(move || told.finish(call())),
        };
        grip.runs_as(task.abort_handle());
    }
}
