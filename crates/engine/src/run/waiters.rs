//! Those who wait: for the end of a run, for the answer to an update.

use std::collections::{BTreeMap, HashMap};

use dacapo_core::{Failure, Name, Outcome, Payload};
use dacapo_store::{RunNo, Status};
use tokio::sync::oneshot;

use crate::EngineError;

/// How far an update has come.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateStage {
    /// The workflow accepted it and works on it.
    Accepted,
    /// It is answered.
    Completed(Result<Payload, Failure>),
}

/// Up to where the sender of an update waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitFor {
    /// Until the workflow accepts or rejects it.
    Accepted,
    /// Until it is answered.
    #[default]
    Completed,
}

type UpdateWaiter = (WaitFor, oneshot::Sender<Result<UpdateStage, EngineError>>);

/// Whether the waiter ends when the run is parked, too.
type ResultWaiter = (bool, oneshot::Sender<Result<(Status, Outcome), EngineError>>);

#[derive(Default)]
pub(crate) struct Waits {
    /// Whether nobody will be told anything any more.
    is_over: bool,
    results: HashMap<RunNo, Vec<ResultWaiter>>,
    updates: HashMap<RunNo, BTreeMap<Name, Vec<UpdateWaiter>>>,
}

impl Waits {
    /// Waits for the end of a run; or until it is parked, if that is enough.
    pub(crate) fn for_result(
        &mut self,
        run: RunNo,
        or_stuck: bool,
    ) -> oneshot::Receiver<Result<(Status, Outcome), EngineError>> {
        let (sender, receiver) = oneshot::channel();
        if !self.is_over {
            let waiters = self.results.entry(run).or_default();
            waiters.retain(|(_, waiter)| !waiter.is_closed());
            waiters.push((or_stuck, sender));
        }
        receiver
    }

    pub(crate) fn for_update(
        &mut self,
        run: RunNo,
        update: Name,
        wait: WaitFor,
    ) -> oneshot::Receiver<Result<UpdateStage, EngineError>> {
        let (sender, receiver) = oneshot::channel();
        if !self.is_over {
            let waiters = self.updates.entry(run).or_default().entry(update).or_default();
            waiters.retain(|(_, waiter)| !waiter.is_closed());
            waiters.push((wait, sender));
        }
        receiver
    }

    pub(crate) fn closed(&mut self, run: RunNo, status: Status, outcome: &Outcome) {
        for (_, waiter) in self.results.remove(&run).unwrap_or_default() {
            let _ = waiter.send(Ok((status, outcome.clone())));
        }
        for (_, waiters) in self.updates.remove(&run).unwrap_or_default() {
            for (_, waiter) in waiters {
                let failure = Failure::application(format!("the run is {status}")).typed("RunClosed");
                let _ = waiter.send(Ok(UpdateStage::Completed(Err(failure))));
            }
        }
    }

    pub(crate) fn accepted(&mut self, run: RunNo, update: &Name) {
        let Some(waiters) = self.updates.get_mut(&run).and_then(|updates| updates.get_mut(update)) else { return };
        for (_, waiter) in waiters.extract_if(.., |(wait, _)| *wait == WaitFor::Accepted) {
            let _ = waiter.send(Ok(UpdateStage::Accepted));
        }
    }

    pub(crate) fn answered(&mut self, run: RunNo, update: &Name, answer: &Result<UpdateStage, EngineError>) {
        let Some(updates) = self.updates.get_mut(&run) else { return };
        for (_, waiter) in updates.remove(update).unwrap_or_default() {
            let _ = waiter.send(answer.clone());
        }
        if updates.is_empty() {
            self.updates.remove(&run);
        }
    }

    /// Those who wait for these updates wait for them at the run that they go to.
    pub(crate) fn hand_over(&mut self, from: RunNo, to: RunNo, updates: &[Name]) {
        for update in updates {
            let waiters = self.updates.get_mut(&from).and_then(|waiting| waiting.remove(update));
            self.updates.entry(to).or_default().entry(update.clone()).or_default().extend(waiters.unwrap_or_default());
        }
    }

    /// The run cannot be played now: those who wait for updates need not wait. The updates are kept.
    pub(crate) fn stuck(&mut self, run: RunNo, reason: &str) {
        for (_, waiters) in self.updates.remove(&run).unwrap_or_default() {
            for (_, waiter) in waiters {
                let _ = waiter.send(Err(EngineError::UpdateWaits(reason.to_owned())));
            }
        }
        self.impatient(run, reason);
    }

    /// Those who wait for the result, but not of a run that does not go on, need not wait.
    pub(crate) fn impatient(&mut self, run: RunNo, reason: &str) {
        let Some(waiters) = self.results.get_mut(&run) else { return };
        for (_, waiter) in waiters.extract_if(.., |(or_stuck, _)| *or_stuck) {
            let _ = waiter.send(Err(EngineError::Stuck(reason.to_owned())));
        }
    }

    /// Nobody will be told anything any more.
    pub(crate) fn abandon(&mut self) {
        *self = Self { is_over: true, ..Self::default() };
    }
}
