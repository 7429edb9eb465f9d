//! Temporal's core, as the rest of this crate calls it: completions are sent without waiting for them.

use std::sync::Arc;

use temporalio_common::protos::coresdk::{ActivityHeartbeat, ActivityTaskCompletion};
use temporalio_sdk_core::Worker;
use tokio::runtime::Handle;

use crate::proto::completion::WorkflowActivationCompletion;

/// A worker of Temporal's core, and the runtime on which its calls run.
pub(crate) struct CoreWorker {
    worker: Arc<Worker>,
    runtime: Handle,
}

impl CoreWorker {
    pub(crate) fn new(worker: Worker, runtime: Handle) -> Self {
        Self { worker: Arc::new(worker), runtime }
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Sends the completion of an activation. Whether the server accepted it shows in the next activation of the run.
    pub(crate) fn complete_activation(&self, completion: WorkflowActivationCompletion) {
        let worker = self.worker.clone();
        self.runtime.spawn(async move {
            if let Err(error) = worker.complete_workflow_activation(completion).await {
                tracing::error!(target: "dacapo", %error, "a completion was refused; this is a bug of Dacapo");
            }
        });
    }

    pub(crate) fn complete_activity(&self, completion: ActivityTaskCompletion) {
        let worker = self.worker.clone();
        self.runtime.spawn(async move {
            if let Err(error) = worker.complete_activity_task(completion).await {
                tracing::error!(target: "dacapo", %error, "the result of an activity was refused; this is a bug of Dacapo");
            }
        });
    }

    pub(crate) fn record_heartbeat(&self, heartbeat: ActivityHeartbeat) {
        // Core spawns the report: it needs the runtime's context, which a blocking activity does not have.
        let _runtime = self.runtime.enter();
        self.worker.record_activity_heartbeat(heartbeat);
    }

    /// Asks core to take a run out of memory once nothing of it is being played.
    pub(crate) fn evict(&self, run_id: &str) {
        let _runtime = self.runtime.enter();
        self.worker.request_workflow_eviction(run_id);
    }
}
