//! Errors that every backend can answer.

use dacapo_core::{Failure, Name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{Feature, Status};

/// The result of a call to a backend.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a call to a backend. Nothing was changed, unless the variant says otherwise. Workflow code never
/// sees one of these: it sees a [`Failure`].
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[serde(tag = "error", content = "with", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// There is no such run.
    #[error("there is no run of workflow id {workflow_id:?}{}: check the id, and whether the run was deleted", run_id.as_ref().map(|id| format!(" with run id {id:?}")).unwrap_or_default())]
    NotFound {
        /// The workflow id.
        workflow_id: Name,
        /// The run id, if one was given.
        run_id: Option<Name>,
    },
    /// The run is closed and accepts nothing more.
    #[error("the run of workflow id {workflow_id:?} is {status} and accepts nothing more: {}", .status.what_to_do())]
    Closed {
        /// The workflow id.
        workflow_id: Name,
        /// The run's status.
        status: Status,
    },
    /// No such workflow is registered.
    #[error(
        "no workflow {workflow:?} is registered here; registered are: {known}. Add it to `serve`, or name another queue that serves it"
    )]
    UnknownWorkflow {
        /// The workflow asked for.
        workflow: Name,
        /// Those that are registered.
        known: String,
    },
    /// An argument is invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// A payload is too large.
    #[error(
        "{what} is {} bytes long, at most {} are allowed: store large data elsewhere and pass a reference{}",
        crate::grouped(*.size), crate::grouped(*.limit), or_raise(.setting)
    )]
    PayloadTooLarge {
        /// The payload's role: an input, a result, a header.
        what: String,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
        /// The setting of the backend that raises the limit, if it has one.
        #[serde(default)]
        setting: Option<Name>,
    },
    /// Too many messages wait for the run.
    #[error(
        "the run of workflow id {workflow_id:?} has {} messages that it has not taken, at most {} are allowed: send again when it has \
         taken some{}", crate::grouped(*.waiting), crate::grouped(*.limit), or_raise(.setting)
    )]
    InboxFull {
        /// The workflow id.
        workflow_id: Name,
        /// How many messages wait.
        waiting: usize,
        /// The limit.
        limit: usize,
        /// The setting of the backend that raises the limit, if it has one.
        #[serde(default)]
        setting: Option<Name>,
    },
    /// The workflow id is in use, or was used, and the start does not allow that.
    #[error("{reason}")]
    WorkflowIdInUse {
        /// The workflow id.
        workflow_id: Name,
        /// The run that has it.
        run_id: Name,
        /// Which rule refused the start, and how to allow it.
        reason: String,
    },
    /// The request id was used before, with another workflow or input.
    #[error("{reason}")]
    RequestIdInUse {
        /// The request id.
        request_id: Name,
        /// The first use of the id, and what to do.
        reason: String,
    },
    /// The run has no such open promise.
    #[error(
        "the run of workflow id {workflow_id:?} has no open promise {promise:?}: it was resolved before, or is not open yet; open now: {open}. Check the name, or \
         resolve it once the run has opened it"
    )]
    PromiseNotFound {
        /// The workflow id.
        workflow_id: Name,
        /// The name or id asked for.
        promise: Name,
        /// The open promises.
        open: String,
    },
    /// The promise was resolved before.
    #[error(
        "promise {0:?} cannot be resolved: it was resolved before, and the first resolution holds. Send a signal for what is new"
    )]
    AlreadyResolved(Name),
    /// The run has no such pending activity.
    #[error(
        "the run of workflow id {workflow_id:?} has no activity {activity_id:?} pending: it has a result, was cancelled, or was never called; `describe` lists what is pending"
    )]
    ActivityNotFound {
        /// The workflow id.
        workflow_id: Name,
        /// The id asked for.
        activity_id: Name,
    },
    /// The text is no completion token.
    #[error("{0}")]
    InvalidToken(String),
    /// The token names an earlier attempt.
    #[error(
        "this is the token of attempt {attempt} of activity {activity_id:?} of workflow id {workflow_id:?}, which counts no more: \
         attempt {current} is the one that counts. Pass on the token that this attempt gave"
    )]
    StaleToken {
        /// The workflow id.
        workflow_id: Name,
        /// The activity's id.
        activity_id: Name,
        /// The attempt that the token names.
        attempt: u32,
        /// The current attempt.
        current: u32,
    },
    /// A timeout of the attempt passed before its result came.
    #[error(
        "attempt {attempt} of activity {activity_id:?} of workflow id {workflow_id:?} has timed out: its result came too late \
         and is not accepted. Complete the next attempt by its own token, or set a longer timeout"
    )]
    AttemptTimedOut {
        /// The workflow id.
        workflow_id: Name,
        /// The activity's id.
        activity_id: Name,
        /// The attempt that the token names.
        attempt: u32,
    },
    /// The run was sent no such update.
    #[error(
        "the run of workflow id {workflow_id:?} has no update with request id {update_id:?}: it was never sent, was rejected, or its run is deleted. Send it \
         with `update`"
    )]
    UpdateNotFound {
        /// The workflow id.
        workflow_id: Name,
        /// The request id asked for.
        update_id: Name,
    },
    /// The workflow rejected the update. The run's history has nothing of it, but the rejection is stored as the answer to
    /// its request id: the same id gets it again, even with another value and after the run closed. Send a corrected update
    /// under a new request id.
    #[error("the update was rejected: {0}")]
    UpdateRejected(Box<Failure>),
    /// The update is stored, and the run cannot be played now. Ask again with the same request id.
    #[error(
        "the update is kept until the run can be played again; ask again with the same request id. The run cannot be played now: {0}"
    )]
    UpdateWaits(String),
    /// The query failed.
    #[error("the query failed: {0}")]
    QueryFailed(Box<Failure>),
    /// The run cannot be played now, so it cannot answer.
    #[error("the run cannot be played now: {0}")]
    Stuck(String),
    /// The run is open, and only a closed run allows this.
    #[error("the run is open, and only a closed run allows this: wait for its end, cancel it or terminate it first")]
    RunOpen,
    /// A run with this run id exists.
    #[error("run {0} exists already: delete it first if it is to be replaced")]
    RunExists(Name),
    /// The backend does not allow this: because of the state of the run, of what is stored, or of the caller's rights.
    #[error("{0}")]
    Refused(String),
    /// The backend lacks a feature.
    #[error("this backend ({backend}) does not support {feature}: {}", .feature.instead())]
    Unsupported {
        /// The feature.
        feature: Feature,
        /// The backend.
        backend: String,
    },
    /// The backend was opened for reading only. The text says how to open it for writing.
    #[error("{0}")]
    ReadOnly(String),
    /// The backend was shut down. Whether a change was made is not known.
    #[error("this backend is shut down: make the call in the process that serves the runs now")]
    ShutDown,
    /// The backend takes no such call now: another process serves or has locked its data, or it limits the rate of calls. Nothing
    /// was changed.
    #[error("{0}")]
    Busy(String),
    /// The backend has no room left. Nothing was changed.
    #[error("{0}")]
    Full(String),
    /// The data of the backend are damaged, or are not Dacapo's.
    #[error("{0}")]
    Damaged(String),
    /// The backend cannot be reached. Whether a change was made is not known.
    #[error("{0}")]
    Unavailable(String),
    /// An error that a newer backend has and this build does not know.
    #[error(transparent)]
    #[serde(untagged)]
    Unknown(UnknownError),
}

/// An error of a newer backend, as it came. Whether a change was made is not known.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[error(
    "the backend answers with the error {error:?}, which this build does not know{}: see what the backend's version says of it, or use a client as new",
    if .with.is_null() { String::new() } else { format!(" ({with})") }
)]
#[non_exhaustive]
pub struct UnknownError {
    /// The name of the error.
    pub error: String,
    /// The data that came with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub with: Value,
}

fn or_raise(setting: &Option<Name>) -> String {
    setting.as_ref().map(|setting| format!(", or raise `{setting}`")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_newer_backend_is_read_with_all_it_says_and_written_as_it_came() {
        for text in [r#"{"error":"over_quota","with":{"limit":3}}"#, r#"{"error":"asleep"}"#] {
            let error: Error = serde_json::from_str(text).unwrap();
            assert!(matches!(&error, Error::Unknown(_)), "{error:?}");
            assert_eq!(serde_json::to_string(&error).unwrap(), text);
        }
        let error: Error = serde_json::from_str(r#"{"error":"over_quota","with":{"limit":3}}"#).unwrap();
        assert_eq!(
            error.to_string(),
            "the backend answers with the error \"over_quota\", which this build does not know ({\"limit\":3}): see what the \
             backend's version says of it, or use a client as new"
        );
        let fuller = r#"{"error":"not_found","with":{"workflow_id":"a","run_id":null,"since":7}}"#;
        let not_found = Error::NotFound { workflow_id: "a".into(), run_id: None };
        assert_eq!(serde_json::from_str::<Error>(fuller).unwrap(), not_found, "fields that are new are ignored");
    }

    #[test]
    fn advice_of_a_closed_run_depends_on_how_it_ended() {
        let text = |status| Error::Closed { workflow_id: "a".into(), status }.to_string();
        assert_eq!(
            text(Status::Failed),
            "the run of workflow id \"a\" is failed and accepts nothing more: there is nothing to end or release, and what is to be \
             sent needs another run"
        );
        assert_eq!(
            text(Status::ContinuedAsNew),
            "the run of workflow id \"a\" is continued as new and accepts nothing more: call the run that goes on: by \
             `handle.latest()`, or by the workflow id without a run id"
        );
    }

    #[test]
    fn limit_is_said_to_be_raised_only_by_a_setting_that_the_backend_has() {
        let text = |setting| {
            Error::PayloadTooLarge { what: "the input".into(), size: 1_204, limit: 1_000, setting }.to_string()
        };
        assert_eq!(
            text(None),
            "the input is 1,204 bytes long, at most 1,000 are allowed: store large data elsewhere and pass a reference"
        );
        assert!(text(Some("payload_limit".into())).ends_with("and pass a reference, or raise `payload_limit`"));
    }
}
