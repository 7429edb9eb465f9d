//! Sending messages to runs: signals, requests to cancel, resolved promises.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Failure, Job, Name, Outcome, Payload, Resolution, Signal};
use dacapo_store::{NewMessage, RunNo, RunRow, SentMessage, StoreError, Write, Written};
use tokio::sync::oneshot;

use crate::api::{check_message, check_result, named, open, open_row, row, write, written};
use crate::encode::encode;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::names::check_name;
use crate::read::RunId;
use crate::run::deliver::ask;
use crate::run::message::Request;
use crate::shared::Shared;

impl Engine {
    /// Sends a signal to a run. Returns when the signal is durable. With a request id, the same request again changes
    /// nothing.
    pub async fn signal(&self, to: &RunId, signal: Signal, request: Option<Name>) -> Result<(), Error> {
        check_name("signal name", &signal.name)?;
        check_message(&self.shared, "a signal", &signal.input, &signal.headers)?;
        let job = Job::Signal(Box::new(signal));
        match request {
            Some(request) => {
                check_name("request id", &request)?;
                self.send(to, format!("signal:{request}").into(), true, job).await
            }
            None => self.send(to, format!("once:{}", self.shared.host.run_id()).into(), false, job).await,
        }
    }

    /// Asks a run to cancel. The workflow decides what it does about it.
    pub async fn cancel(&self, to: &RunId, reason: &str) -> Result<(), Error> {
        self.send(to, "cancel".into(), false, Job::Cancel { reason: reason.to_owned() }).await
    }

    /// Resolves an open promise of a run, by its name or its id. The first resolution holds.
    pub async fn resolve_promise(
        &self,
        to: &RunId,
        promise: Name,
        result: Result<Payload, Failure>,
    ) -> Result<(), Error> {
        check_name("promise name", &promise)?;
        check_result(&self.shared, "the value of a promise", &result)?;
        let (of, wanted) = (to.clone(), promise.clone());
        let (answer, answered) = oneshot::channel();
        let row = self
            .blocking(WorkKind::Read, move |shared| {
                let row = open_row(shared, &of)?;
                ask(shared, row.no, Request::FindPromise(wanted, answer));
                Ok(row)
            })
            .await?;
        let seq = answered.await.unwrap_or(Err(Error::ShutDown))?;
        let job = Job::resolve(seq, Resolution::Promise(Outcome::from(result)));
        let key = format!("promise:{}", seq.0).into();
        let sending =
            self.blocking(WorkKind::Write, move |shared| SendingMessage::begin(shared, &row, key, job)).await?;
        if sending.stored().await?.fresh { Ok(()) } else { Err(Error::AlreadyResolved(promise)) }
    }

    /// Sends a message to the run that is meant, also if that run continues as new meanwhile. A sender with a request
    /// id sends again when it has received no answer: the closed runs of the chain are asked whether they took the
    /// message.
    async fn send(&self, to: &RunId, key: Name, is_request: bool, job: Job) -> Result<(), Error> {
        loop {
            let (to, key, job) = (to.clone(), key.clone(), job.clone());
            let sending = self.blocking(WorkKind::Write, move |shared| {
                let row = row(shared, &to)?;
                if is_request && sent_before(shared, &row, &key)?.is_some() {
                    return Ok(None);
                }
                SendingMessage::begin(shared, &open(row)?, key, job).map(Some)
            });
            let Some(sending) = sending.await? else { return Ok(()) };
            match sending.stored().await {
                Err(Error::Closed { .. }) => {}
                sent => return sent.map(drop),
            }
        }
    }
}

/// A message on its way to the store.
pub(crate) struct SendingMessage {
    workflow_id: Name,
    answered: oneshot::Receiver<Result<Written, StoreError>>,
}

impl SendingMessage {
    /// Submits a message for an open run.
    pub(crate) fn begin(shared: &Arc<Shared>, row: &RunRow, key: Name, job: Job) -> Result<Self, Error> {
        // Messages of a run that is not in memory, or that another node plays, wait in the store alone.
        let cached = shared.runs.get(row.no).filter(|_| shared.owns(row.no));
        let limit = shared.options.message_limit;
        let waiting = match cached.and_then(|cached| cached.lock().waiting()) {
            Some(waiting) => waiting,
            None => waiting_in_store(shared, row.no)?,
        };
        if waiting >= limit {
            let setting = Some(Name::from_static("message_limit"));
            return Err(Error::InboxFull { workflow_id: row.workflow_id.clone(), waiting, limit, setting });
        }
        let message = NewMessage { key, sent: shared.now(), job: encode(job) };
        let answered = write(shared, Write::Send { run: row.no, message, ended: None });
        Ok(Self { workflow_id: row.workflow_id.clone(), answered })
    }

    /// Waits until the message is durable.
    pub(crate) async fn stored(self) -> Result<SentMessage, Error> {
        match written(self.answered).await {
            Ok(Written::Sent(sent)) => Ok(sent),
            Ok(other) => unreachable!("a message was answered with {other:?}"),
            Err(error) => Err(named(error, &self.workflow_id)),
        }
    }
}

/// Returns how many messages wait in the store for a run, to which one more is sent.
fn waiting_in_store(shared: &Shared, run: RunNo) -> Result<usize, StoreError> {
    let now = shared.host.steady_now();
    if let Some(waiting) = shared.waiting_counts.next(run, now) {
        return Ok(waiting);
    }
    let waiting = shared.store().count_unseen(run)?;
    shared.waiting_counts.note(run, waiting, shared.options.message_limit, now);
    Ok(waiting)
}

/// Finds the closed run of this run's chain that took the message with this key. An open run recognizes its own
/// messages when they are sent again, so that a chain of one open run costs nothing.
pub(crate) fn sent_before(shared: &Shared, row: &RunRow, key: &Name) -> Result<Option<RunRow>, Error> {
    if row.status.is_open() && row.run_id == row.first_run_id {
        return Ok(None);
    }
    // The last run first: it answers an update that was handed on.
    for run in shared.store().asked(&row.first_run_id, key)?.into_iter().rev() {
        if let Some(run) = shared.store().run(run)?.filter(|run| !run.status.is_open()) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}
