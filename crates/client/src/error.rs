//! Errors that every backend can answer.

use dacapo_core::{Failure, Name};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Feature, Status};

/// The result of a call to a backend.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a backend did not do what it was asked. Nothing was changed, unless the variant says otherwise. Workflow code never
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
    #[error("the run of workflow id {workflow_id:?} is {status} and accepts nothing more: {}", after_close(*.status))]
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
        "{what} is {} bytes long, at most {} are allowed: store large data elsewhere and pass a reference, or raise `payload_limit`", crate::grouped(*.size), crate::grouped(*.limit)
    )]
    PayloadTooLarge {
        /// The payload's role: an input, a result, a header.
        what: String,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Too many messages wait for the run.
    #[error(
        "the run of workflow id {workflow_id:?} has {} messages that it has not taken, at most {} are allowed: send again when it has \
         taken some, or raise `message_limit`", crate::grouped(*.waiting), crate::grouped(*.limit)
    )]
    InboxFull {
        /// The workflow id.
        workflow_id: Name,
        /// How many messages wait.
        waiting: usize,
        /// The limit.
        limit: usize,
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
        "the run of workflow id {workflow_id:?} has no update {update_id:?}: it was never sent, was rejected, or its run is deleted. Send it \
         with `update`"
    )]
    UpdateNotFound {
        /// The workflow id.
        workflow_id: Name,
        /// The id asked for.
        update_id: Name,
    },
    /// The workflow rejected the update. It left no trace.
    #[error("the update was rejected: {0}")]
    UpdateRejected(Box<Failure>),
    /// The update is stored, and the run cannot be played now. Ask again with the same update id.
    #[error(
        "the update is kept until the run can be played again; ask again with the same update id. The run cannot be played now: {0}"
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
    /// The state of the run does not allow this.
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
    /// The store was opened for reading only.
    #[error("the store is open for reading only: open it without `mode=ro` in the process that serves it")]
    ReadOnly,
    /// The backend was shut down. Whether a change was made is not known.
    #[error("the engine is shut down: call the process that serves the store now")]
    ShutDown,
    /// Another process serves the store, or has locked it. Nothing was changed.
    #[error("{0}")]
    Busy(String),
    /// The store has no room left. Nothing was changed.
    #[error("{0}")]
    Full(String),
    /// The store is damaged, or is no store of ours.
    #[error("{0}")]
    Damaged(String),
    /// The backend cannot be reached. Whether a change was made is not known.
    #[error("{0}")]
    Unavailable(String),
}

/// Returns the advice for a caller whose run is closed.
fn after_close(status: Status) -> &'static str {
    match status {
        Status::ContinuedAsNew => {
            "the handle of a start names the first run of a chain. Call the run that it continued as, by `handle.latest()` or \
             by the workflow id alone"
        }
        _ => "start another run",
    }
}
