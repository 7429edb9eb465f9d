//! External completion: the code of an attempt has ended, and the holder of the attempt's token completes it.
//!
//! Such an attempt takes no place and survives restarts without being made again; in all else it is an attempt like any
//! other: its timeouts count from its beginning, and its failures are retried as the retry policy says.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Cancelled, Failure, Job, Name, Payload, Resolution, RetryState};
use dacapo_store::{NewMessage, Refused, RunRow, StoreError, Write, Written};
use dacapo_worker::{CompletionToken, TokenError};
use tokio::sync::oneshot;

use crate::activity::cancel::cancel_task;
use crate::activity::dispatch::dispatch;
use crate::activity::end::retry_at;
use crate::activity::heartbeat::heartbeat;
use crate::activity::task::{AfterFailure, Task};
use crate::api::{check_result, check_size, named, open_row, write_then, written};
use crate::encode::encode;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::lifecycle::zombies::give_up;
use crate::names::check_name;
use crate::read::RunId;
use crate::shared::Shared;

/// A pending activity and its run.
struct PendingTask {
    row: RunRow,
    task: Task,
}

impl Engine {
    /// Completes the attempt of a completion token. Returns when the result is durable. A result completes the
    /// activity; the retry policy decides about a failure, like about that of an attempt that ran here. A result that
    /// comes after a timeout of the attempt was due is refused.
    pub async fn complete(&self, token: &str, result: Result<Payload, Failure>) -> Result<(), Error> {
        let token: CompletionToken = parse(token)?;
        check_result(&self.shared, "the result of an activity", &result)?;
        let (row, ending) = self
            .blocking(WorkKind::Write, move |shared| {
                let PendingTask { row, task } = of_token(shared, &token)?;
                let ending = end(shared, &row, &task, result);
                Ok((row, (ending, token.activity_id)))
            })
            .await?;
        let (ending, activity_id) = ending;
        match ending {
            Ending::Ended(ended) => ended.wait().await,
            Ending::Retried(told) => match told.await {
                Ok(Err(StoreError::Refused(_))) => Err(no_such_activity(&row, &activity_id)),
                Ok(written) => Ok(written?),
                Err(_) => Err(Error::ShutDown),
            },
        }
    }

    /// Reports the progress of the attempt of a completion token, which extends its heartbeat timeout. Returns the
    /// reason why the attempt is no longer wanted, if it is not.
    pub async fn heartbeat(&self, token: &str, details: Payload) -> Result<Option<Cancelled>, Error> {
        let token: CompletionToken = parse(token)?;
        check_size(&self.shared, "what an attempt reports", &details)?;
        self.blocking(WorkKind::Read, move |shared| {
            let PendingTask { row, task } = of_token(shared, &token)?;
            heartbeat(shared, (row.no, task.command.seq, token.attempt), details);
            Ok(task.cancelled.map(|reason| Cancelled { reason }))
        })
        .await
    }

    /// Completes a pending activity from outside. Returns when the result is durable. An attempt that runs is given up,
    /// and no other follows. The first result holds.
    pub async fn complete_activity(
        &self,
        of: &RunId,
        activity_id: Name,
        result: Result<Payload, Failure>,
    ) -> Result<(), Error> {
        check_name("activity id", &activity_id)?;
        check_result(&self.shared, "the result of an activity", &result)?;
        let of = of.clone();
        let ended = self.blocking(WorkKind::Write, move |shared| {
            let row = open_row(shared, &of)?;
            let task = shared.tasks.find(row.no, &activity_id).ok_or_else(|| no_such_activity(&row, &activity_id))?;
            Ok(Ended::begin(shared, &row, &task, result, RetryState::NonRetryableFailure))
        });
        ended.await?.wait().await
    }
}

fn no_such_activity(row: &RunRow, activity_id: &Name) -> Error {
    Error::ActivityNotFound { workflow_id: row.workflow_id.clone(), activity_id: activity_id.clone() }
}

fn parse(token: &str) -> Result<CompletionToken, Error> {
    token.parse().map_err(|error: TokenError| Error::InvalidToken(error.to_string()))
}

/// Finds the task whose attempt a token names, if that is still the last attempt and has not timed out.
fn of_token(shared: &Shared, token: &CompletionToken) -> Result<PendingTask, Error> {
    let CompletionToken { workflow_id, run_id, activity_id, attempt } = token;
    let row = open_row(shared, &RunId { workflow_id: workflow_id.clone(), run_id: Some(run_id.clone()) })?;
    let task = shared.tasks.find(row.no, activity_id).ok_or_else(|| no_such_activity(&row, activity_id))?;
    let (workflow_id, activity_id) = (workflow_id.clone(), activity_id.clone());
    if task.attempt != *attempt {
        return Err(Error::StaleToken { workflow_id, activity_id, attempt: *attempt, current: task.attempt });
    }
    if task.overdue(shared.host.steady_now()).is_some() {
        return Err(Error::AttemptTimedOut { workflow_id, activity_id, attempt: *attempt });
    }
    Ok(PendingTask { row, task })
}

/// The end of an attempt, on its way to the store.
enum Ending {
    /// The activity ends with the attempt.
    Ended(Box<Ended>),
    /// Another attempt follows.
    Retried(oneshot::Receiver<Result<(), StoreError>>),
}

fn end(shared: &Arc<Shared>, row: &RunRow, task: &Task, result: Result<Payload, Failure>) -> Ending {
    let failure = match result {
        Ok(result) => {
            return Ending::Ended(Box::new(Ended::begin(shared, row, task, Ok(result), RetryState::Unspecified)));
        }
        Err(failure) => failure,
    };
    let at = match task.next_after(&failure, shared.clock()) {
        AfterFailure::End(why) => return Ending::Ended(Box::new(Ended::begin(shared, row, task, Err(failure), why))),
        AfterFailure::Retry(at) => at,
    };
    let (tell, told) = oneshot::channel();
    let (run, seq) = (row.no, task.command.seq);
    match shared.tasks.fail_external_attempt((run, seq, task.attempt), failure, at) {
        Some((alarms, handle, write)) => {
            shared.timers.disarm(&alarms);
            if let Some(handle) = handle {
                give_up(shared, &handle, "the holder of its token said that it failed");
            }
            retry_at(shared, (run, seq), at, write, move |result| drop(tell.send(result)));
            dispatch(shared);
        }
        // The attempt is over already, and the next one is about to begin.
        None => drop(tell.send(Ok(()))),
    }
    Ending::Retried(told)
}

/// The result that completes an activity from outside, on its way to the store.
struct Ended {
    row: RunRow,
    task: Task,
    answered: oneshot::Receiver<Result<Written, StoreError>>,
}

impl Ended {
    fn begin(
        shared: &Arc<Shared>,
        row: &RunRow,
        task: &Task,
        result: Result<Payload, Failure>,
        retry: RetryState,
    ) -> Self {
        let seq = task.command.seq;
        let outcome = task.outcome(result, retry);
        let resolution = Resolution::Activity(outcome);
        let job = encode(Job::Resolve { seq, resolution, retried: task.retried() });
        let message = NewMessage { key: format!("task:{}", seq.0).into(), sent: shared.now(), job };
        let (run, send) = (row.no, Write::Send { run: row.no, message, ended: Some(task.no) });
        let answered = write_then(shared, send, move |shared| cancel_task(shared, run, seq, false));
        Self { row: row.clone(), task: task.clone(), answered }
    }

    async fn wait(self) -> Result<(), Error> {
        match written(self.answered).await {
            Ok(_) => Ok(()),
            Err(StoreError::Refused(Refused::NoSuchTask)) => {
                Err(no_such_activity(&self.row, &self.task.command.id.to_string().into()))
            }
            Err(error) => Err(named(error, &self.row.workflow_id)),
        }
    }
}
