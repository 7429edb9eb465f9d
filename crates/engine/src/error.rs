//! Errors that callers of the engine get. Never recorded, never seen by workflow code.

use dacapo_core::{Failure, Name};
use dacapo_store::{Refused, Status, StoreError};
use dacapo_worker::TokenError;
use thiserror::Error;

/// An error of a call to the engine. Nothing was changed, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// There is no such run.
    #[error("there is no run of workflow id {workflow_id:?}{}: check the id, and whether the run was deleted", run_id.as_ref().map(|id| format!(" with run id {id:?}")).unwrap_or_default())]
    NotFound {
        /// The workflow id.
        workflow_id: Name,
        /// The run id, if one was given.
        run_id: Option<Name>,
    },
    /// The run is closed.
    #[error("the run of workflow id {workflow_id:?} is {status} and accepts nothing more: start another run")]
    Closed {
        /// The workflow id.
        workflow_id: Name,
        /// The status with which it closed.
        status: Status,
    },
    /// No such workflow is registered.
    #[error(
        "no workflow {workflow:?} is registered here; registered are: {known}. Add it to `serve`, or name another queue that serves it"
    )]
    UnknownWorkflow {
        /// The workflow asked for.
        workflow: Name,
        /// The workflows that are registered.
        known: String,
    },
    /// An argument is invalid.
    #[error("{0}")]
    BadInput(String),
    /// A payload is too large.
    #[error(
        "{what} is {} bytes long, at most {} are allowed: store large data elsewhere and pass a reference, or raise `payload_limit`", dacapo_client::grouped(*.size), dacapo_client::grouped(*.limit)
    )]
    PayloadTooLarge {
        /// What the payload is.
        what: String,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The run has too many messages that it has not taken.
    #[error(
        "the run of workflow id {workflow_id:?} has {waiting} messages that it has not taken: wait until it does, or raise `message_limit`"
    )]
    InboxFull {
        /// The workflow id.
        workflow_id: Name,
        /// The number of messages that wait.
        waiting: usize,
    },
    /// The run has no such promise open.
    #[error(
        "the run of workflow id {workflow_id:?} has no open promise {promise:?}: it was resolved before, or is not open yet; open now: {open}"
    )]
    NoSuchPromise {
        /// The workflow id.
        workflow_id: Name,
        /// The name or id asked for.
        promise: Name,
        /// The promises that are open.
        open: String,
    },
    /// The run has no such activity pending.
    #[error(
        "the run of workflow id {workflow_id:?} has no activity {activity_id:?} pending: it has a result, was cancelled, or was never called; `describe` lists what is pending"
    )]
    NoSuchActivity {
        /// The workflow id.
        workflow_id: Name,
        /// The id asked for.
        activity_id: Name,
    },
    /// The run was sent no such update.
    #[error("the run of workflow id {workflow_id:?} has no update {update_id:?}: it was never sent, or was rejected")]
    NoSuchUpdate {
        /// The workflow id.
        workflow_id: Name,
        /// The id asked for.
        update_id: Name,
    },
    /// A text that is no completion token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is that of an earlier attempt, which failed or took too long meanwhile.
    #[error(
        "this is the token of attempt {attempt} of activity {activity_id:?} of workflow id {workflow_id:?}, which counts no more: \
         attempt {current} is the one that counts, and has a token of its own"
    )]
    OldToken {
        /// The workflow id.
        workflow_id: Name,
        /// The activity's id.
        activity_id: Name,
        /// The attempt that the token names.
        attempt: u32,
        /// The current attempt.
        current: u32,
    },
    /// A timeout of the attempt was due before its result came.
    #[error(
        "attempt {attempt} of activity {activity_id:?} of workflow id {workflow_id:?} has timed out: its result came too late \
         and is not accepted"
    )]
    AttemptTimedOut {
        /// The workflow id.
        workflow_id: Name,
        /// The activity's id.
        activity_id: Name,
        /// The attempt that the token names.
        attempt: u32,
    },
    /// Runs that continue as each other, so that their chain has no end. The engine makes no such runs: they were
    /// imported.
    #[error(
        "the runs of workflow id {workflow_id:?} go on as each other in a circle, by way of run {run_id:?}: they come from a damaged \
         file of histories. Delete them, and import a sound one"
    )]
    Circle {
        /// The workflow id.
        workflow_id: Name,
        /// A run of the circle.
        run_id: Name,
    },
    /// The promise was resolved before.
    #[error("promise {0:?} was resolved before; the first resolution holds")]
    AlreadyResolved(Name),
    /// The workflow's validator rejected the update, or the workflow has no handler for it. The update left no trace.
    #[error("the update was rejected: {0}")]
    UpdateRejected(Box<Failure>),
    /// The run cannot be played now. The update is kept and taken when it can; ask again with the same update id.
    #[error("the update is kept until the run can be played again; ask again with the same update id. {0}")]
    UpdateWaits(String),
    /// A query could not be answered.
    #[error("the query failed: {0}")]
    QueryFailed(Box<Failure>),
    /// The run cannot be played now, so it cannot answer.
    #[error("the run cannot be played now: {0}")]
    Stuck(String),
    /// The store was opened for reading only.
    #[error("the store is open for reading only: open it without `mode=ro` in the process that serves it")]
    ReadOnly,
    /// The system cannot start a thread.
    #[error("a thread cannot be started: {0}")]
    NoThread(String),
    /// The engine was shut down.
    #[error("the engine is shut down: call the process that serves the store now")]
    ShutDown,
    /// The store refused the write.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store failed. Whether the change was made is not known if the error says so.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refused) => Self::Refused(refused),
            error => Self::Store(error),
        }
    }
}
