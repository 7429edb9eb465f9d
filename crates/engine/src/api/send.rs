//! What others send a run: signals, updates, requests to cancel, resolved promises; and the end from outside.

use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_core::{
    Failure, FailureKind, Headers, Inspection, Job, Name, Outcome, Payload, Query, Resolution, RetryState, Seq, Signal,
    Update,
};
use dacapo_store::{NewMail, Posted, Refused, RunNo, RunRow, Status, StoreError, Write, Written};
use tokio::sync::oneshot;

use crate::activity::task_queue::Task;
use crate::api::start::check_name;
use crate::crash_guard::quarantine::{is_quarantined, words_on_run};
use crate::inner::{Inner, outcome_of};
use crate::read::archive::next_run;
use crate::run::cached_run::Ask;
use crate::run::waiters::{UpdateStage, WaitFor};
use crate::turn::plan::encode;
use crate::turn::update_outcome::{Answered, update_key};
use crate::{Engine, EngineError, RunId};

impl Engine {
    /// Signals a run. It is durable when this answers. With a request id, the same request again changes nothing.
    pub async fn signal(&self, to: &RunId, signal: Signal, request: Option<Name>) -> Result<(), EngineError> {
        check_name("a signal", &signal.name)?;
        self.check_input("the input of a signal", &signal.input)?;
        let job = Job::Signal(Box::new(signal));
        match request {
            Some(request) => {
                check_name("a request id", &request)?;
                let key: Name = format!("signal:{request}").into();
                self.post(to, key, true, job).await.map(drop)
            }
            None => self.post(to, format!("once:{}", self.inner.host.run_id()).into(), false, job).await.map(drop),
        }
    }

    /// Asks a run to cancel. What it does about it is its own decision.
    pub async fn cancel(&self, to: &RunId, reason: &str) -> Result<(), EngineError> {
        self.post(to, "cancel".into(), false, Job::Cancel { reason: reason.to_owned() }).await.map(drop)
    }

    /// Sends an update, and waits until it is accepted or answered. The same id again is the same update.
    pub async fn update(&self, to: &RunId, update: Update, wait: WaitFor) -> Result<UpdateStage, EngineError> {
        check_name("an update", &update.name)?;
        check_name("an update id", &update.id)?;
        self.check_input("the input of an update", &update.input)?;
        let id = update.id.clone();
        loop {
            let row = self.row(to)?;
            if let Some(before) = self.sent_before(&row, &update_key(&id))?
                && !self.is_handed_on(&before, &id)?
            {
                let closed = EngineError::Closed { workflow_id: before.workflow_id, status: before.status };
                return self.known_stage(before.no, &id, wait)?.unwrap_or(Err(closed));
            }
            let row = open(row)?;
            let answered = self.inner.waits().for_update(row.no, id.clone(), wait);
            let posted = match self.post_to(&row, update_key(&id), Job::Update(Box::new(update.clone()))).await {
                // It closed meanwhile: by this very update, sent before, or to go on as another run.
                Err(EngineError::Closed { .. }) => continue,
                posted => posted?,
            };
            if !posted.fresh
                && let Some(stage) = self.known_stage(posted.run, &id, wait)?
            {
                return stage;
            }
            if is_quarantined(&row) {
                return Err(EngineError::UpdateWaits(words_on_run(&row)));
            }
            return answered.await.unwrap_or(Err(EngineError::ShutDown));
        }
    }

    /// Whether the next run of the chain has this update now. A run that goes on as another answers all that it accepted.
    fn is_handed_on(&self, before: &RunRow, id: &Name) -> Result<bool, EngineError> {
        let mail = self.inner.store.mail(before.no, &update_key(id))?;
        Ok(before.status == Status::ContinuedAsNew && mail.is_some_and(|mail| mail.outcome.is_none()))
    }

    /// How far an update that was sent before has come, if it is far enough.
    fn known_stage(
        &self,
        run: RunNo,
        id: &Name,
        wait: WaitFor,
    ) -> Result<Option<Result<UpdateStage, EngineError>>, EngineError> {
        let Some(mail) = self.inner.store.mail(run, &update_key(id))? else { return Ok(None) };
        let outcome = mail.outcome.as_deref().map(minicbor::decode::<Answered>);
        Ok(match outcome {
            Some(Ok(Answered::Completed(outcome))) => Some(Ok(UpdateStage::Completed(outcome.into()))),
            Some(Ok(Answered::Rejected(failure))) => Some(Err(EngineError::UpdateRejected(Box::new(failure)))),
            Some(Err(error)) => {
                return Err(StoreError::Corrupt(format!("the answer to update {id:?} cannot be read: {error}")).into());
            }
            None if mail.taken.is_some() && wait == WaitFor::Accepted => Some(Ok(UpdateStage::Accepted)),
            None => None,
        })
    }

    /// Resolves an open promise of a run, by its name or its id. The first resolution holds.
    pub async fn resolve_promise(
        &self,
        to: &RunId,
        promise: Name,
        result: Result<Payload, Failure>,
    ) -> Result<(), EngineError> {
        check_name("a promise", &promise)?;
        if let Ok(payload) = &result {
            self.inner.check_size("the value of a promise", payload)?;
        }
        let row = self.open_row(to)?;
        let (answer, answered) = oneshot::channel();
        self.inner.ask(row.no, Ask::Promise(promise.clone(), answer));
        let seq: Seq = answered.await.unwrap_or(Err(EngineError::ShutDown))?;
        let job = Job::Resolve { seq, resolution: Resolution::Promise(Outcome::from(result)) };
        let posted = self.post_to(&row, format!("promise:{}", seq.0).into(), job).await?;
        if posted.fresh { Ok(()) } else { Err(EngineError::AlreadyResolved(promise)) }
    }

    /// Gives a pending activity its result from outside. It is durable when this answers, an attempt that runs is given up,
    /// and there is no further one. The first result holds.
    pub async fn complete_activity(
        &self,
        of: &RunId,
        activity_id: Name,
        result: Result<Payload, Failure>,
    ) -> Result<(), EngineError> {
        check_name("an activity id", &activity_id)?;
        if let Ok(payload) = &result {
            self.inner.check_size("the result of an activity", payload)?;
        }
        let row = self.open_row(of)?;
        let task = self.inner.desk().find(row.no, &activity_id).cloned();
        let task = task.ok_or_else(|| self.no_such_activity(&row, &activity_id))?;
        self.end_activity(&row, &task, result, RetryState::NonRetryableFailure).await
    }

    pub(crate) fn no_such_activity(&self, row: &RunRow, activity_id: &Name) -> EngineError {
        EngineError::NoSuchActivity { workflow_id: row.workflow_id.clone(), activity_id: activity_id.clone() }
    }

    /// Ends a pending activity with what came from outside.
    pub(crate) async fn end_activity(
        &self,
        row: &RunRow,
        task: &Task,
        result: Result<Payload, Failure>,
        why: RetryState,
    ) -> Result<(), EngineError> {
        let seq = task.command.seq;
        let outcome = task.outcome(result, why);
        let job = encode(Job::Resolve { seq, resolution: Resolution::Activity(outcome) });
        let mail = NewMail { key: format!("task:{}", seq.0).into(), sent: self.inner.host.now(), job };
        match self.inner.write(Write::Post { run: row.no, mail, ended: Some(task.no) }).await {
            Ok(_) => {
                self.inner.cancel_task(row.no, seq, false);
                Ok(())
            }
            Err(StoreError::Refused(Refused::NoSuchTask)) => {
                Err(self.no_such_activity(row, &task.command.id.to_string().into()))
            }
            Err(error) => Err(named(error, row)),
        }
    }

    /// Asks a live run a question. It sees all that was acknowledged before.
    pub async fn query(
        &self,
        of: &RunId,
        name: Name,
        input: Vec<Payload>,
        headers: Headers,
    ) -> Result<Payload, EngineError> {
        check_name("a query", &name)?;
        self.check_input("the input of a query", &input)?;
        let row = self.row(of)?;
        let (answer, answered) = oneshot::channel();
        let query = Query { id: Name::from_static("query"), name, input, headers };
        self.inner.ask(row.no, Ask::Query(query, answer));
        answered.await.unwrap_or(Err(EngineError::ShutDown))
    }

    /// What every unit of a run waits for, and where. May play the run again from the beginning.
    pub async fn inspect(&self, of: &RunId) -> Result<Inspection, EngineError> {
        let row = self.row(of)?;
        let (answer, answered) = oneshot::channel();
        self.inner.ask(row.no, Ask::Inspect(answer));
        answered.await.unwrap_or(Err(EngineError::ShutDown))
    }

    /// Ends a run at once. Its code is not asked.
    pub async fn terminate(&self, run: &RunId, reason: &str) -> Result<(), EngineError> {
        let row = self.open_row(run)?;
        let failure = Box::new(Failure::new(FailureKind::Terminated, reason));
        let write = Write::Close { run: row.no, status: Status::Terminated, at: self.inner.host.now(), failure };
        let written = self.inner.write(write).await;
        match written {
            Ok(Written::Turn(_)) => Ok(()),
            Ok(other) => unreachable!("a close was answered with {other:?}"),
            Err(error) => Err(named(error, &row)),
        }
    }

    /// Waits until a run is closed, and gives what it came to. A run that goes on as another is followed.
    pub async fn result(&self, of: &RunId) -> Result<(Status, Result<Payload, Failure>), EngineError> {
        self.wait(of, false).await
    }

    /// The same, but it also ends, with [`EngineError::Stuck`], when the run cannot be played.
    pub async fn result_or_stuck(&self, of: &RunId) -> Result<(Status, Result<Payload, Failure>), EngineError> {
        self.wait(of, true).await
    }

    async fn wait(&self, of: &RunId, or_stuck: bool) -> Result<(Status, Result<Payload, Failure>), EngineError> {
        let mut row = self.row(of)?;
        let mut seen = BTreeSet::new();
        loop {
            let (status, outcome) = match row.status.is_open() {
                false => (row.status, outcome_of(row.result.as_deref())),
                true => self.end_of(&row, or_stuck).await?,
            };
            let Some(next) = next_run(status, &outcome) else { return Ok((status, outcome.into())) };
            if !seen.insert(row.no) {
                return Err(EngineError::Circle { workflow_id: row.workflow_id, run_id: row.run_id });
            }
            if seen.len().is_multiple_of(AT_A_STRETCH) {
                tokio::task::yield_now().await;
            }
            row = self.row(&RunId { workflow_id: row.workflow_id.clone(), run_id: Some(next) })?;
        }
    }

    /// Waits for the end of a run that was open when it was looked at.
    async fn end_of(&self, row: &RunRow, or_stuck: bool) -> Result<(Status, Outcome), EngineError> {
        let wait = self.inner.waits().for_result(row.no, or_stuck);
        // It may have closed, or been parked, before anybody waited.
        match self.inner.store.run(row.no)? {
            Some(row) if !row.status.is_open() => return Ok((row.status, outcome_of(row.result.as_deref()))),
            Some(RunRow { stuck: Some(stuck), .. }) if or_stuck => return Err(EngineError::Stuck(stuck.reason)),
            _ => {}
        }
        wait.await.unwrap_or_else(|_| Err(self.inner.trouble().unwrap_or(EngineError::ShutDown)))
    }

    fn check_input(&self, what: &str, input: &[Payload]) -> Result<(), EngineError> {
        input.iter().try_for_each(|payload| self.inner.check_size(what, payload))
    }

    pub(crate) fn row(&self, of: &RunId) -> Result<RunRow, EngineError> {
        self.inner.check()?;
        self.reader().row(of)
    }

    pub(crate) fn open_row(&self, of: &RunId) -> Result<RunRow, EngineError> {
        open(self.row(of)?)
    }

    /// Posts to whichever run is meant, also if that one goes on as another meanwhile. A sender who has a key of their own
    /// sends it again when they have not heard the answer: the closed runs of the chain are asked whether they took it.
    async fn post(&self, to: &RunId, key: Name, again: bool, job: Job) -> Result<(), EngineError> {
        loop {
            let row = self.row(to)?;
            if again && self.sent_before(&row, &key)?.is_some() {
                return Ok(());
            }
            let row = open(row)?;
            match self.post_to(&row, key.clone(), job.clone()).await {
                Err(EngineError::Closed { .. }) => {}
                posted => return posted.map(drop),
            }
        }
    }

    /// The closed run of this run's chain that took the mail of this key. An open run knows its own mail when it is posted
    /// again, so that a chain of one open run costs nothing.
    fn sent_before(&self, row: &RunRow, key: &Name) -> Result<Option<RunRow>, EngineError> {
        if row.status.is_open() && row.run_id == row.first_run_id {
            return Ok(None);
        }
        // The last first: an update that was handed on is answered there.
        for run in self.inner.store.asked(&row.first_run_id, key)?.into_iter().rev() {
            if let Some(run) = self.inner.store.run(run)?.filter(|run| !run.status.is_open()) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    async fn post_to(&self, row: &RunRow, key: Name, job: Job) -> Result<Posted, EngineError> {
        let waiting = self.inner.runs().get(row.no).map_or(0, |live| live.lock().inbox.len());
        if waiting >= self.inner.options.mail_limit {
            return Err(EngineError::MailboxFull { workflow_id: row.workflow_id.clone(), waiting });
        }
        let mail = NewMail { key, sent: self.inner.host.now(), job: encode(job) };
        match self.inner.write(Write::Post { run: row.no, mail, ended: None }).await {
            Ok(Written::Posted(posted)) => Ok(posted),
            Ok(other) => unreachable!("mail was answered with {other:?}"),
            Err(error) => Err(named(error, row)),
        }
    }
}

impl Inner {
    /// Writes something, and does what follows from it before anybody is told.
    pub(crate) async fn write(self: &Arc<Self>, write: Write) -> Result<Written, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.later(move |this| {
            this.submit(write, move |this, result| {
                match &result {
                    Ok(Written::Posted(posted)) => this.deliver_posted(posted),
                    Ok(Written::Turn(written)) => this.effects(written),
                    Ok(_) | Err(_) => {}
                }
                let _ = answer.send(result);
            });
        });
        answered.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the engine has stopped".to_owned())))
    }
}

/// A long chain is not walked in one go: after so many runs others have a turn, and whoever waits can give up.
const AT_A_STRETCH: usize = 1_000;

fn open(row: RunRow) -> Result<RunRow, EngineError> {
    match row.status.is_open() {
        true => Ok(row),
        false => Err(EngineError::Closed { workflow_id: row.workflow_id, status: row.status }),
    }
}

/// The same error in the caller's words.
fn named(error: StoreError, row: &RunRow) -> EngineError {
    match error {
        StoreError::Refused(Refused::Closed(status)) => {
            EngineError::Closed { workflow_id: row.workflow_id.clone(), status }
        }
        error => error.into(),
    }
}
