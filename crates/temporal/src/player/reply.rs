//! The one reply to an activation: of the thread that plays it, or of the deadlock watch.

use std::sync::Arc;

use dacapo_sync::{Mutex, ranks};

use crate::convert::failure_to_proto;
use crate::player::refusal::Refusal;
use crate::proto::commands::WorkflowCommand;
use crate::proto::completion::{self, WorkflowActivationCompletion, workflow_activation_completion::Status};

type Outlet = Box<dyn FnOnce(WorkflowActivationCompletion) + Send>;

/// Where a reply goes. The first one counts, because the server accepts one.
#[derive(Clone)]
pub(crate) struct Reply {
    run_id: Arc<str>,
    send: Arc<Mutex<Option<Outlet>>>,
}

impl Reply {
    pub(crate) fn new(run_id: &str, send: impl FnOnce(WorkflowActivationCompletion) + Send + 'static) -> Self {
        Self { run_id: run_id.into(), send: Arc::new(Mutex::new(ranks::TEMPORAL_REPLY, Some(Box::new(send)))) }
    }

    /// Answers with commands, and the flags that the run uses.
    pub(crate) fn done(&self, commands: Vec<WorkflowCommand>, flags: Vec<u32>) {
        let success = completion::Success { commands, used_internal_flags: flags, ..completion::Success::default() };
        self.send(Status::Successful(success));
    }

    /// Answers that the activation cannot be played: the run stays open, and the server tries the task again.
    pub(crate) fn failed(&self, refusal: &Refusal) {
        self.send(Status::Failed(completion::Failure {
            failure: Some(failure_to_proto(&refusal.failure())),
            force_cause: refusal.task_cause() as i32,
        }));
    }

    fn send(&self, status: Status) {
        let send = self.send.lock().take();
        if let Some(send) = send {
            send(WorkflowActivationCompletion {
                run_id: self.run_id.to_string(),
                status: Some(status),
                ..WorkflowActivationCompletion::default()
            });
        }
    }
}
