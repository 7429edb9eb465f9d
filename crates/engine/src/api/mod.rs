//! The calls of an engine. Callers are on threads of an async runtime: a thread that may block reads and writes the
//! store, and the caller awaits its answer.

pub(crate) mod admin;
pub(crate) mod external_completion;
pub(crate) mod query;
pub(crate) mod result;
pub(crate) mod send;
pub(crate) mod start;
pub(crate) mod update;

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Failure, Headers, Name, Payload};
use dacapo_store::{Refused, RunRow, StoreError, Write, Written};
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::host::WorkKind;
use crate::names::check_name;
use crate::read;
use crate::read::RunId;
use crate::run::deliver::deliver_sent;
use crate::shared::Shared;
use crate::turn::effects::apply_in_other_runs;
use crate::turn::validate::{failure_size, headers_size};
use crate::writes::submit;

impl Engine {
    /// Runs work on a thread that may block, and awaits its answer.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        kind: WorkKind,
        work: impl FnOnce(&Arc<Shared>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.shared.check()?;
        let (answer, answered) = oneshot::channel();
        self.shared.later(kind, None, move |shared| drop(answer.send(work(shared))));
        answered.await.unwrap_or(Err(Error::ShutDown))
    }
}

/// The setting that raises the limit for payloads.
const PAYLOAD_LIMIT: Name = Name::from_static("payload_limit");

/// Checks the size of a payload that a caller gives.
pub(crate) fn check_size(shared: &Shared, what: &str, payload: &Payload) -> Result<(), Error> {
    let (size, limit) = (payload.inline_size(), shared.options.payload_limit);
    match size > limit {
        true => Err(Error::PayloadTooLarge { what: what.to_owned(), size, limit, setting: Some(PAYLOAD_LIMIT) }),
        false => Ok(()),
    }
}

/// Checks a result that a caller gives.
pub(crate) fn check_result(shared: &Shared, what: &str, result: &Result<Payload, Failure>) -> Result<(), Error> {
    let failure = match result {
        Ok(payload) => return check_size(shared, what, payload),
        Err(failure) => failure,
    };
    let (size, limit) = (failure_size(failure), shared.options.payload_limit);
    match size > limit {
        true => Err(Error::PayloadTooLarge {
            what: format!("{what} as a failure"),
            size,
            limit,
            setting: Some(PAYLOAD_LIMIT),
        }),
        false => Ok(()),
    }
}

/// Checks the sizes of the arguments and headers that a caller gives with a message, such as `a signal`.
pub(crate) fn check_message(shared: &Shared, what: &str, input: &[Payload], headers: &Headers) -> Result<(), Error> {
    input.iter().try_for_each(|payload| check_size(shared, &format!("the input of {what}"), payload))?;
    check_headers(shared, &format!("the header section of {what}"), headers)
}

/// Checks the names of headers that a caller gives, and the size of all of them together.
pub(crate) fn check_headers(shared: &Shared, what: &str, headers: &Headers) -> Result<(), Error> {
    headers.keys().try_for_each(|name| check_name("header name", name))?;
    let (size, limit) = (headers_size(headers), shared.options.payload_limit);
    match size > limit {
        true => Err(Error::PayloadTooLarge { what: what.to_owned(), size, limit, setting: Some(PAYLOAD_LIMIT) }),
        false => Ok(()),
    }
}

/// Reads the row of a run.
pub(crate) fn row(shared: &Shared, of: &RunId) -> Result<RunRow, Error> {
    read::describe::row(shared.store(), of)
}

/// Reads the row of a run that must be open.
pub(crate) fn open_row(shared: &Shared, of: &RunId) -> Result<RunRow, Error> {
    open(row(shared, of)?)
}

/// Returns the row if its run is open, otherwise an error.
pub(crate) fn open(row: RunRow) -> Result<RunRow, Error> {
    match row.status.is_open() {
        true => Ok(row),
        false => Err(Error::Closed { workflow_id: row.workflow_id, status: row.status }),
    }
}

/// Submits a write on this thread. The receiver gets the answer when the effects of the write are applied.
pub(crate) fn write(shared: &Arc<Shared>, write: Write) -> oneshot::Receiver<Result<Written, StoreError>> {
    write_then(shared, write, |_| {})
}

/// Submits a write like `write`, and calls `then` once it is written, whether or not the caller still waits. `then` is
/// part of a commit callback.
pub(crate) fn write_then(
    shared: &Arc<Shared>,
    write: Write,
    then: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> oneshot::Receiver<Result<Written, StoreError>> {
    let (answer, answered) = oneshot::channel();
    submit(shared, write, move |shared, result| {
        match &result {
            Ok(Written::Sent(sent)) => deliver_sent(shared, sent),
            Ok(Written::Turn(written)) => apply_in_other_runs(shared, (**written).clone()),
            Ok(_) | Err(_) => {}
        }
        if result.is_ok() {
            then(shared);
        }
        let _ = answer.send(result);
    });
    answered
}

/// Awaits the result of a write.
pub(crate) async fn written(answered: oneshot::Receiver<Result<Written, StoreError>>) -> Result<Written, StoreError> {
    answered.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the engine has stopped".to_owned())))
}

/// Converts an error of the store, and adds the workflow id of the run.
pub(crate) fn named(error: StoreError, workflow_id: &Name) -> Error {
    match error {
        StoreError::Refused(Refused::Closed(status)) => Error::Closed { workflow_id: workflow_id.clone(), status },
        error => error.into(),
    }
}
