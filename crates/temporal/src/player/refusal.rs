//! Why an activation cannot be played. The run stays open, and the server tries its task again with growing pauses.

use dacapo_client::StuckCause;
use dacapo_core::{ActivationError, Failure};

use crate::proto::enums::WorkflowTaskFailedCause;

/// The begin of the type of the failure with which a worker of Dacapo answers a task; the name of the cause follows.
pub(crate) const TASK_FAILED: &str = "dacapo:stuck/";

/// The type of the failure of a task whose local work was cut off. The run is not stuck: its task is tried again.
const CUT_OFF: &str = "dacapo:cut-off";

/// The answer to an activation that cannot be played.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Why the run is stuck. None if it is not.
    cause: Option<StuckCause>,
    message: String,
}

impl Refusal {
    pub(crate) fn new(cause: StuckCause, message: impl Into<String>) -> Self {
        Self { cause: Some(cause), message: message.into() }
    }

    /// The answer to a result that no local activity has had: the run leaves memory while one of them waits for its next attempt.
    pub(crate) fn cut_off() -> Self {
        let why = "the run leaves memory while its local activities wait for their next attempts: they begin anew";
        Self { cause: None, message: why.to_owned() }
    }

    pub(crate) fn of(error: &ActivationError) -> Self {
        Self::new(StuckCause::of_activation(error), error.to_string())
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The failure that the server keeps.
    pub(crate) fn failure(&self) -> Failure {
        let failure = Failure::application(&self.message);
        let Some(cause) = self.cause else { return failure.typed(CUT_OFF) };
        let word = serde_json::to_value(cause).ok().and_then(|word| word.as_str().map(str::to_owned));
        failure.typed(format!("{TASK_FAILED}{}", word.unwrap_or_default()))
    }

    /// The cause by which the server's tools sort failed tasks.
    pub(crate) fn task_cause(&self) -> WorkflowTaskFailedCause {
        match self.cause {
            Some(StuckCause::Nondeterminism | StuckCause::DoublePlay) => WorkflowTaskFailedCause::NonDeterministicError,
            _ => WorkflowTaskFailedCause::WorkflowWorkerUnhandledFailure,
        }
    }
}

/// Returns the cause that a failed task names, if a worker of Dacapo wrote it.
pub(crate) fn cause_of(failure: &Failure) -> Option<StuckCause> {
    let word = failure.type_name.as_ref()?.strip_prefix(TASK_FAILED)?;
    serde_json::from_value(word.into()).ok()
}

/// Whether a task failed because its local work was cut off.
pub(crate) fn is_cut_off(failure: &Failure) -> bool {
    failure.type_name.as_ref().is_some_and(|name| *name == CUT_OFF)
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
        let cut_off = Refusal::cut_off().failure();
        assert!(is_cut_off(&cut_off) && cause_of(&cut_off).is_none());
    }
}
