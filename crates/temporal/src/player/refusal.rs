//! Why an activation cannot be played. The run stays open, and the server tries its task again with growing pauses.

use dacapo_client::StuckCause;
use dacapo_core::{ActivationError, Failure};

use crate::proto::enums::WorkflowTaskFailedCause;

/// The begin of the type of the failure with which a worker of Dacapo answers a task; the name of the cause follows.
pub(crate) const TASK_FAILED: &str = "dacapo:stuck/";

/// The answer to an activation that cannot be played.
#[derive(Debug)]
pub(crate) struct Refusal {
    cause: StuckCause,
    message: String,
}

impl Refusal {
    pub(crate) fn new(cause: StuckCause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into() }
    }

    pub(crate) fn of(error: &ActivationError) -> Self {
        Self::new(StuckCause::of_activation(error), error.to_string())
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The failure that the server keeps.
    pub(crate) fn failure(&self) -> Failure {
        let word = serde_json::to_value(self.cause).ok().and_then(|word| word.as_str().map(str::to_owned));
        Failure::application(&self.message).typed(format!("{TASK_FAILED}{}", word.unwrap_or_default()))
    }

    /// The cause by which the server's tools sort failed tasks.
    pub(crate) fn task_cause(&self) -> WorkflowTaskFailedCause {
        match self.cause {
            StuckCause::Nondeterminism | StuckCause::DoublePlay => WorkflowTaskFailedCause::NonDeterministicError,
            _ => WorkflowTaskFailedCause::WorkflowWorkerUnhandledFailure,
        }
    }
}

/// Returns the cause that a failed task names, if a worker of Dacapo wrote it.
pub(crate) fn cause_of(failure: &Failure) -> Option<StuckCause> {
    let word = failure.type_name.as_ref()?.strip_prefix(TASK_FAILED)?;
    serde_json::from_value(word.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_of_a_failed_task_comes_back_from_its_failure() {
        for cause in StuckCause::ALL {
            assert_eq!(cause_of(&Refusal::new(cause, "why").failure()), Some(cause));
        }
        assert_eq!(cause_of(&Failure::application("of another SDK").typed("ValueError")), None);
    }
}
