//! External completion: the code of an attempt has ended, and the holder of the attempt's token completes it.
//!
//! Such an attempt takes no place and survives restarts without being made again; in all else it is an attempt like any
//! other: its timeouts count from its beginning, and its failures are retried as the retry policy says.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Cancelled, Failure, Job, Name, Payload, Resolution, RetryState};
use dacapo_store::{NewMessage, NodeNo, Notice, Recipient, Refused, RunRow, StoreError, Write, Written};
use dacapo_worker::{CompletionToken, TokenError};
use tokio::sync::oneshot;

use crate::activity::adopt::{Origins, adopt, read_task};
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

/// A pending activity, its run, and the node that works at it.
struct PendingTask {
    row: RunRow,
    task: Task,
    place: Place,
}

/// The node that works at an activity, where several nodes share the store.
#[derive(Clone, Copy)]
enum Place {
    /// This process.
    Here,
    /// Another node.
    At(NodeNo),
    /// No node has taken it yet.
    Nowhere,
}

/// The outcome of a report of progress.
pub(crate) enum Reported {
    /// It is noted. The reason why the attempt is no longer wanted, if it is not.
    Here(Option<Cancelled>),
    /// This node is to be called instead: it waits for the attempt.
    At(NodeNo),
}

impl Engine {
    /// Completes the attempt of a completion token. Returns when the result is durable. A result completes the
    /// activity; the retry policy decides about a failure, like about that of an attempt that ran here. A result that
    /// comes after a timeout of the attempt was due is refused.
    pub async fn complete(&self, token: &str, result: Result<Payload, Failure>) -> Result<(), Error> {
        complete_here(self, token, result).await?.map_or(Ok(()), |_| Err(elsewhere()))
    }

    /// Reports the progress of the attempt of a completion token, which extends its heartbeat timeout. Returns the
    /// reason why the attempt is no longer wanted, if it is not.
    pub async fn heartbeat(&self, token: &str, details: Payload) -> Result<Option<Cancelled>, Error> {
        match heartbeat_here(self, token, details).await? {
            Reported::Here(cancelled) => Ok(cancelled),
            Reported::At(_) => Err(elsewhere()),
        }
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
            let pending = find(shared, open_row(shared, &of)?, &activity_id)?;
            Ok(Ended::begin(shared, &pending, result, RetryState::NonRetryableFailure))
        });
        ended.await?.wait().await
    }
}

/// Completes the attempt of a completion token like [`Engine::complete`]. Returns the node that is to be called instead, if
/// the attempt failed and another node makes the next one.
pub(crate) async fn complete_here(
    engine: &Engine,
    token: &str,
    result: Result<Payload, Failure>,
) -> Result<Option<NodeNo>, Error> {
    let token: CompletionToken = parse(token)?;
    check_result(&engine.shared, "the result of an activity", &result)?;
    let (row, ending, activity_id) = engine
        .blocking(WorkKind::Write, move |shared| {
            let pending = of_token(shared, &token)?;
            let ending = end(shared, &pending, result)?;
            Ok((pending.row, ending, token.activity_id))
        })
        .await?;
    match ending {
        Ending::Ended(ended) => ended.wait().await.map(|()| None),
        Ending::Retried(told) => match told.await {
            Ok(Err(StoreError::Refused(_))) => Err(no_such_activity(&row, &activity_id)),
            Ok(written) => Ok(written.map(|()| None)?),
            Err(_) => Err(Error::ShutDown),
        },
        Ending::At(node) => Ok(Some(node)),
    }
}

/// Reports the progress of the attempt of a completion token like [`Engine::heartbeat`], if it is this node that waits for
/// the attempt.
pub(crate) async fn heartbeat_here(engine: &Engine, token: &str, details: Payload) -> Result<Reported, Error> {
    let token: CompletionToken = parse(token)?;
    check_size(&engine.shared, "what an attempt reports", &details)?;
    engine
        .blocking(WorkKind::Read, move |shared| {
            let PendingTask { row, task, place } = of_token(shared, &token)?;
            match place {
                Place::Here => heartbeat(shared, (row.no, task.command.seq, token.attempt), details),
                Place::At(node) => return Ok(Reported::At(node)),
                Place::Nowhere => return Err(nowhere()),
            }
            Ok(Reported::Here(task.cancelled.map(|reason| Cancelled { reason })))
        })
        .await
}

fn no_such_activity(row: &RunRow, activity_id: &Name) -> Error {
    Error::ActivityNotFound { workflow_id: row.workflow_id.clone(), activity_id: activity_id.clone() }
}

fn elsewhere() -> Error {
    Error::Unavailable("another node works at the activity: call through the client of an app".to_owned())
}

fn nowhere() -> Error {
    Error::Unavailable("no node works at the activity at this moment: call again".to_owned())
}

fn parse(token: &str) -> Result<CompletionToken, Error> {
    token.parse().map_err(|error: TokenError| Error::InvalidToken(error.to_string()))
}

/// Finds the task whose attempt a token names, if that is still the last attempt and has not timed out.
fn of_token(shared: &Arc<Shared>, token: &CompletionToken) -> Result<PendingTask, Error> {
    let CompletionToken { workflow_id, run_id, activity_id, attempt } = token;
    let row = open_row(shared, &RunId { workflow_id: workflow_id.clone(), run_id: Some(run_id.clone()) })?;
    let pending = find(shared, row, activity_id)?;
    let (workflow_id, activity_id) = (workflow_id.clone(), activity_id.clone());
    if pending.task.attempt != *attempt {
        return Err(Error::StaleToken { workflow_id, activity_id, attempt: *attempt, current: pending.task.attempt });
    }
    if pending.task.overdue(shared.host.steady_now()).is_some() {
        return Err(Error::AttemptTimedOut { workflow_id, activity_id, attempt: *attempt });
    }
    Ok(pending)
}

/// Finds a pending activity of a run: in memory, or, where another node may work at it, in the store.
fn find(shared: &Arc<Shared>, row: RunRow, activity_id: &Name) -> Result<PendingTask, Error> {
    let here = |row: &RunRow| shared.tasks.find(row.no, activity_id);
    if let Some(task) = here(&row) {
        return Ok(PendingTask { row, task, place: Place::Here });
    }
    let Some(nodes) = shared.nodes() else { return Err(no_such_activity(&row, activity_id)) };
    let mut origins = Origins::default();
    for stored in shared.store().tasks_of(row.no)? {
        let Some(task) = read_task(shared, &stored, &mut origins)? else { continue };
        if *task.command.id.to_string() != **activity_id {
            continue;
        }
        let place = match stored.node {
            Some(node) if node == nodes.node() => {
                // It may have been taken over a moment ago.
                adopt(shared, &stored, &mut origins)?;
                Place::Here
            }
            Some(node) => Place::At(node),
            None => Place::Nowhere,
        };
        let task = here(&row).unwrap_or(task);
        return Ok(PendingTask { row, task, place });
    }
    Err(no_such_activity(&row, activity_id))
}

/// The end of an attempt, on its way to the store.
enum Ending {
    /// The activity ends with the attempt.
    Ended(Box<Ended>),
    /// Another attempt follows.
    Retried(oneshot::Receiver<Result<(), StoreError>>),
    /// Another attempt follows, which this node makes: it is to be called instead.
    At(NodeNo),
}

fn end(shared: &Arc<Shared>, pending: &PendingTask, result: Result<Payload, Failure>) -> Result<Ending, Error> {
    let PendingTask { row, task, place } = pending;
    let ended = |result, retry| Ending::Ended(Box::new(Ended::begin(shared, pending, result, retry)));
    let failure = match result {
        Ok(result) => return Ok(ended(Ok(result), RetryState::Unspecified)),
        Err(failure) => failure,
    };
    let at = match task.next_after(&failure, shared.clock()) {
        AfterFailure::End(why) => return Ok(ended(Err(failure), why)),
        AfterFailure::Retry(at) => at,
    };
    match place {
        Place::Here => {}
        Place::At(node) => return Ok(Ending::At(*node)),
        Place::Nowhere => return Err(nowhere()),
    }
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
    Ok(Ending::Retried(told))
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
        PendingTask { row, task, place }: &PendingTask,
        result: Result<Payload, Failure>,
        retry: RetryState,
    ) -> Self {
        let seq = task.command.seq;
        let outcome = task.outcome(result, retry);
        let resolution = Resolution::Activity(outcome);
        let job = encode(Job::Resolve { seq, resolution, retried: task.retried() });
        let message = NewMessage { key: format!("task:{}", seq.0).into(), sent: shared.now(), job };
        let (run, send) = (row.no, Write::Send { run: row.no, message, ended: Some(task.no) });
        let place = *place;
        let answered = write_then(shared, send, move |shared| match (place, shared.nodes()) {
            (Place::At(node), Some(nodes)) => nodes.notify(Recipient::Node(node), Notice::Cancelled(run, seq)),
            _ => cancel_task(shared, run, seq, false),
        });
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
