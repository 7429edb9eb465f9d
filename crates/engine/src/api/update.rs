//! Updates: messages with an answer.

use std::sync::Arc;

use dacapo_client::Error;
use dacapo_core::{Job, Name, Update, from_stored};
use dacapo_store::{RunNo, RunRow, Status, StoreError};
use tokio::sync::oneshot;

use crate::api::send::{SendingMessage, sent_before};
use crate::api::{check_message, open, row};
use crate::crash_guard::count::quarantine_reason;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::names::check_name;
use crate::read::RunId;
use crate::run::waiters::{UpdateAnswer, UpdateStage, WaitFor};
use crate::shared::Shared;
use crate::turn::update_outcome::{UpdateOutcome, update_key};

impl Engine {
    /// Sends an update, and waits until it is accepted or answered. The same id again is the same update.
    pub async fn update(&self, to: &RunId, update: Update, wait: WaitFor) -> Result<UpdateStage, Error> {
        check_name("update name", &update.name)?;
        check_name("request id", &update.id)?;
        check_message(&self.shared, "an update", &update.input, &update.headers)?;
        loop {
            let (to, update, id) = (to.clone(), update.clone(), update.id.clone());
            let sent = self.blocking(WorkKind::Write, move |shared| send(shared, &to, update, wait)).await?;
            let (sending, answered, row) = match sent {
                Sent::Before(answer) => return answer,
                Sent::Now(sending, answered, row) => (sending, answered, row),
            };
            let forget = |answered: oneshot::Receiver<UpdateAnswer>| {
                drop(answered);
                self.shared.waiters.forget_update(&row.first_run_id, &id);
            };
            let stored = match sending.stored().await {
                Ok(stored) => stored,
                Err(error) => {
                    forget(answered);
                    match error {
                        // The run closed meanwhile: because of this update, which was sent before, or to continue as
                        // another run.
                        Error::Closed { .. } => continue,
                        error => return Err(error),
                    }
                }
            };
            if !stored.fresh {
                let update = id.clone();
                let known =
                    self.blocking(WorkKind::Read, move |shared| known_answer(shared, stored.run, &update, wait));
                if let Some(answer) = known.await? {
                    forget(answered);
                    return answer;
                }
            }
            if self.shared.options.crash_limits.quarantines(row.crash_count) {
                forget(answered);
                return Err(Error::UpdateWaits(quarantine_reason(&row).text));
            }
            return answered.await.unwrap_or(Err(Error::ShutDown));
        }
    }
}

impl Engine {
    /// Waits until an update that was sent before is accepted or answered.
    pub async fn update_result(&self, to: &RunId, id: Name, wait: WaitFor) -> Result<UpdateStage, Error> {
        check_name("request id of the update", &id)?;
        let of = to.clone();
        match self.blocking(WorkKind::Read, move |shared| find(shared, &of, &id, wait)).await? {
            Found::Known(answer) => answer,
            Found::Open(answered) => answered.await.unwrap_or(Err(Error::ShutDown)),
        }
    }
}

/// An update that was sent before.
enum Found {
    /// This is its answer.
    Known(UpdateAnswer),
    /// A run has it, and answers here.
    Open(oneshot::Receiver<UpdateAnswer>),
}

fn find(shared: &Arc<Shared>, to: &RunId, id: &Name, wait: WaitFor) -> Result<Found, Error> {
    let row = row(shared, to)?;
    // Register before the stored answer is looked for: it may come at once.
    let answered = shared.waiters.for_update((row.no, &row.first_run_id), id.clone(), wait);
    let known = find_answer(shared, &row, id, wait);
    if matches!(known, Ok(None)) {
        return Ok(Found::Open(answered));
    }
    drop(answered);
    shared.waiters.forget_update(&row.first_run_id, id);
    Ok(Found::Known(known?.expect("an answer that is not there is waited for")))
}

/// Returns the answer to an update that the chain of this run was sent; none if it is still worked on.
fn find_answer(shared: &Shared, row: &RunRow, id: &Name, wait: WaitFor) -> Result<Option<UpdateAnswer>, Error> {
    let mut asked = shared.store().asked(&row.first_run_id, &update_key(id))?;
    loop {
        // The last run answers an update that was handed on.
        let mut runs = asked.iter().rev().filter_map(|run| shared.store().run(*run).transpose());
        let Some(run) = runs.next().transpose()? else {
            return Err(Error::UpdateNotFound { workflow_id: row.workflow_id.clone(), update_id: id.clone() });
        };
        if let Some(answer) = known_answer(shared, run.no, id, wait)? {
            return Ok(Some(answer));
        }
        match () {
            () if shared.options.crash_limits.quarantines(run.crash_count) => {
                return Err(Error::UpdateWaits(quarantine_reason(&run).text));
            }
            () if run.status.is_open() => return Ok(None),
            () => {}
        }
        // It may have been handed on since; if no later run has it, that run is deleted.
        let again = shared.store().asked(&row.first_run_id, &update_key(id))?;
        if again == asked {
            return Err(Error::Closed { workflow_id: run.workflow_id, status: run.status });
        }
        asked = again;
    }
}

/// An update that was sent.
enum Sent {
    /// It was sent before, and this is its answer.
    Before(UpdateAnswer),
    /// It is on its way to this run.
    Now(SendingMessage, oneshot::Receiver<UpdateAnswer>, Box<RunRow>),
}

fn send(shared: &Arc<Shared>, to: &RunId, update: Update, wait: WaitFor) -> Result<Sent, Error> {
    let row = row(shared, to)?;
    let id = update.id.clone();
    if let Some(before) = sent_before(shared, &row, &update_key(&id))?
        && !is_handed_on(shared, &before, &id)?
    {
        let closed = Error::Closed { workflow_id: before.workflow_id, status: before.status };
        return Ok(Sent::Before(known_answer(shared, before.no, &id, wait)?.unwrap_or(Err(closed))));
    }
    let row = open(row)?;
    // Register before the update is sent: the answer may come at once.
    let answered = shared.waiters.for_update((row.no, &row.first_run_id), id.clone(), wait);
    match SendingMessage::begin(shared, &row, update_key(&id), Job::Update(Box::new(update))) {
        Ok(sending) => Ok(Sent::Now(sending, answered, Box::new(row))),
        Err(error) => {
            drop(answered);
            shared.waiters.forget_update(&row.first_run_id, &id);
            Err(error)
        }
    }
}

/// Whether the next run of the chain has this update now. A run that continues as new answers all that it accepted.
fn is_handed_on(shared: &Shared, before: &RunRow, id: &Name) -> Result<bool, Error> {
    let message = shared.store().message(before.no, &update_key(id))?;
    Ok(before.status == Status::ContinuedAsNew && message.is_some_and(|message| message.outcome.is_none()))
}

/// The answer to an update that was sent before, if the update has reached the stage that the caller waits for.
fn known_answer(shared: &Shared, run: RunNo, id: &Name, wait: WaitFor) -> Result<Option<UpdateAnswer>, Error> {
    let Some(message) = shared.store().message(run, &update_key(id))? else { return Ok(None) };
    let outcome = message.outcome.as_deref().map(from_stored::<UpdateOutcome>);
    match outcome {
        Some(Ok(outcome)) => Ok(Some(outcome.answer())),
        Some(Err(error)) => {
            Err(StoreError::Corrupt(format!("the answer to update {id:?} cannot be read: {error}")).into())
        }
        None if message.taken.is_some() && wait == WaitFor::Accepted => Ok(Some(Ok(UpdateStage::Accepted))),
        None => Ok(None),
    }
}
