//! The one reply to an activation: of the thread that plays it, or of the deadlock watch.

use std::sync::Arc;
use std::thread;

use dacapo_client::StuckCause;
use dacapo_sync::{Mutex, ranks};

use crate::convert::failure_to_proto;
use crate::player::refusal::Refusal;
use crate::proto::commands::WorkflowCommand;
use crate::proto::completion::{self, WorkflowActivationCompletion, workflow_activation_completion::Status};

type Outlet = Box<dyn FnOnce(WorkflowActivationCompletion) + Send>;

/// Where a reply goes. The first one counts, because the server accepts one. A thread that panics before it replied fails the
/// activation: a run whose activation has no reply is lost until the process ends.
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

impl Drop for Reply {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "the thread that played this activation panicked outside of the workflow's code; this is a bug of Dacapo";
            self.failed(&Refusal::new(StuckCause::Internal, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::mpsc;

    use super::*;

    fn reply() -> (Reply, mpsc::Receiver<WorkflowActivationCompletion>) {
        let (sent, received) = mpsc::channel();
        (Reply::new("run", move |completion| sent.send(completion).unwrap()), received)
    }

    #[test]
    fn thread_that_panics_fails_its_activation() {
        let (reply, received) = reply();
        let reply = std::panic::AssertUnwindSafe(reply);
        let played = catch_unwind(move || {
            let _reply = reply;
            panic!("of the test");
        });
        played.unwrap_err();
        let failed = received.try_recv().unwrap();
        let Some(Status::Failed(failed)) = failed.status else { panic!("{failed:?}") };
        assert!(failed.failure.unwrap().message.contains("panicked outside"));
    }

    #[test]
    fn reply_that_is_dropped_sends_nothing_and_the_first_one_counts() {
        let (dropped, received) = reply();
        drop(dropped);
        assert!(received.try_recv().is_err());
        let (first, received) = reply();
        first.done(Vec::new(), Vec::new());
        first.failed(&Refusal::new(StuckCause::Deadlock, "too late"));
        assert!(matches!(received.try_recv().unwrap().status, Some(Status::Successful(_))));
        assert!(received.try_recv().is_err());
    }
}
