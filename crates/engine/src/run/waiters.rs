//! Callers that wait: for the end of a run, for the answer to an update.
//!
//! Callers of an update wait for it by the chain of its run, and not by the run: a run that continues as new hands its
//! updates on to the next, perhaps several times before the caller looks again, and the answer of any of them is the answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dacapo_client::Error;
use dacapo_core::{Failure, Name, Outcome, Payload};
use dacapo_store::{RunNo, Status};
use dacapo_sync::{Mutex, ranks};
use tokio::sync::oneshot;

/// The stage that an update has reached.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateStage {
    /// The workflow accepted it and works on it.
    Accepted,
    /// The workflow has answered it.
    Completed(Result<Payload, Failure>),
}

/// The stage up to which the sender of an update waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitFor {
    /// Until the workflow accepts or rejects it.
    Accepted,
    /// Until it is answered.
    #[default]
    Completed,
}

/// The answer for the sender of an update.
pub(crate) type UpdateAnswer = Result<UpdateStage, Error>;
/// The answer for a caller that waits for the end of a run.
pub(crate) type RunEnd = Result<(Status, Outcome), Error>;

/// The sender of an update, and the run that it was sent to.
struct UpdateWaiter {
    run: RunNo,
    wait: WaitFor,
    sender: oneshot::Sender<UpdateAnswer>,
}

/// A caller that waits for the end of a run, and whether it stops waiting when the run is stuck, too.
type ResultWaiter = (bool, oneshot::Sender<RunEnd>);

/// The callers that wait.
pub(crate) struct Waiters(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether the engine has stopped, so that no caller is answered any more.
    is_stopped: bool,
    results: HashMap<RunNo, Vec<ResultWaiter>>,
    /// The senders of updates, by the first run id of the chain and by update id.
    updates: BTreeMap<Name, BTreeMap<Name, Vec<UpdateWaiter>>>,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::WAITERS, State::default()))
    }

    /// Registers a caller that waits for the end of a run, with `or_stuck` also for the run to be stuck.
    pub(crate) fn for_result(&self, run: RunNo, or_stuck: bool) -> oneshot::Receiver<RunEnd> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.0.lock();
        if !state.is_stopped {
            let waiters = state.results.entry(run).or_default();
            waiters.retain(|(_, waiter)| !waiter.is_closed());
            waiters.push((or_stuck, sender));
        }
        receiver
    }

    /// The runs for whose end callers wait.
    pub(crate) fn runs(&self) -> Vec<RunNo> {
        self.0.lock().results.keys().copied().collect()
    }

    /// Whether a caller waits for the end of this run.
    pub(crate) fn waits_for(&self, run: RunNo) -> bool {
        self.0.lock().results.get(&run).is_some_and(|waiters| waiters.iter().any(|(_, waiter)| !waiter.is_closed()))
    }

    /// Forgets the callers that no longer wait for the end of a run.
    pub(crate) fn forget_result(&self, run: RunNo) {
        let mut state = self.0.lock();
        if let Some(waiters) = state.results.get_mut(&run) {
            waiters.retain(|(_, waiter)| !waiter.is_closed());
            if waiters.is_empty() {
                state.results.remove(&run);
            }
        }
    }

    /// Registers the sender of an update to this run of a chain.
    pub(crate) fn for_update(
        &self,
        (run, chain): (RunNo, &Name),
        update: Name,
        wait: WaitFor,
    ) -> oneshot::Receiver<UpdateAnswer> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.0.lock();
        if !state.is_stopped {
            let waiters = state.updates.entry(chain.clone()).or_default().entry(update).or_default();
            waiters.retain(|waiter| !waiter.sender.is_closed());
            waiters.push(UpdateWaiter { run, wait, sender });
        }
        receiver
    }

    /// Forgets the senders of an update that no longer wait.
    pub(crate) fn forget_update(&self, chain: &Name, update: &Name) {
        let mut state = self.0.lock();
        let Some(updates) = state.updates.get_mut(chain) else { return };
        if let Some(waiters) = updates.get_mut(update) {
            waiters.retain(|waiter| !waiter.sender.is_closed());
            if waiters.is_empty() {
                updates.remove(update);
            }
        }
        if updates.is_empty() {
            state.updates.remove(chain);
        }
    }

    /// Answers callers because a run has closed. If its chain goes on, its updates do, too.
    pub(crate) fn run_closed(&self, run: RunNo, chain: &Name, status: Status, outcome: &Outcome) {
        let mut state = self.0.lock();
        let results = state.results.remove(&run).unwrap_or_default();
        let updates = match status {
            Status::ContinuedAsNew => Vec::new(),
            _ => state.take_sent_up_to(run, chain),
        };
        drop(state);
        for (_, waiter) in results {
            let _ = waiter.send(Ok((status, outcome.clone())));
        }
        for waiter in updates {
            let failure = Failure::application(format!("the run is {status}")).typed("RunClosed");
            let _ = waiter.sender.send(Ok(UpdateStage::Completed(Err(failure))));
        }
    }

    /// Moves callers of updates to the run that a reset made, which handles the updates. The callers of `dropped`
    /// updates stay with the old run, and end with it.
    pub(crate) fn run_reset(&self, from: RunNo, to: RunNo, chain: &Name, dropped: &BTreeSet<Name>) {
        let mut state = self.0.lock();
        let Some(updates) = state.updates.get_mut(chain) else { return };
        let kept = updates.iter_mut().filter(|(update, _)| !dropped.contains(*update)).flat_map(|(_, waiters)| waiters);
        kept.filter(|waiter| waiter.run <= from).for_each(|waiter| waiter.run = to);
    }

    /// Answers callers that wait until an update is accepted.
    pub(crate) fn update_accepted(&self, chain: &Name, update: &Name) {
        let mut state = self.0.lock();
        let Some(waiters) = state.updates.get_mut(chain).and_then(|updates| updates.get_mut(update)) else { return };
        for waiter in waiters.extract_if(.., |waiter| waiter.wait == WaitFor::Accepted) {
            let _ = waiter.sender.send(Ok(UpdateStage::Accepted));
        }
    }

    /// Answers the callers of an update that was answered or rejected.
    pub(crate) fn update_answered(&self, chain: &Name, update: &Name, answer: &UpdateAnswer) {
        let mut state = self.0.lock();
        let Some(updates) = state.updates.get_mut(chain) else { return };
        for waiter in updates.remove(update).unwrap_or_default() {
            let _ = waiter.sender.send(answer.clone());
        }
        if updates.is_empty() {
            state.updates.remove(chain);
        }
    }

    /// Answers callers whose updates are in a run that cannot be played now. The updates are kept.
    pub(crate) fn run_stuck(&self, run: RunNo, chain: &Name, reason: &str) {
        let updates = self.0.lock().take_sent_up_to(run, chain);
        for waiter in updates {
            let _ = waiter.sender.send(Err(Error::UpdateWaits(reason.to_owned())));
        }
        self.wake_result_or_stuck(run, reason);
    }

    /// Answers the callers of updates whose runs another node plays from now on: it answers them when they ask again.
    pub(crate) fn runs_moved(&self, has_moved: impl Fn(RunNo) -> bool, error: &Error) {
        let mut state = self.0.lock();
        let mut moved = Vec::new();
        state.updates.retain(|_, updates| {
            updates.retain(|_, waiters| {
                moved.extend(waiters.extract_if(.., |waiter| has_moved(waiter.run)));
                !waiters.is_empty()
            });
            !updates.is_empty()
        });
        drop(state);
        for waiter in moved {
            let _ = waiter.sender.send(Err(error.clone()));
        }
    }

    /// Wakes callers of `result_or_stuck` when a run gets stuck.
    pub(crate) fn wake_result_or_stuck(&self, run: RunNo, reason: &str) {
        let mut state = self.0.lock();
        let Some(waiters) = state.results.get_mut(&run) else { return };
        for (_, waiter) in waiters.extract_if(.., |(or_stuck, _)| *or_stuck) {
            let _ = waiter.send(Err(Error::Stuck(reason.to_owned())));
        }
    }

    /// Drops all waiters, now and later, because the engine has stopped.
    pub(crate) fn stop(&self) {
        let before = std::mem::replace(&mut *self.0.lock(), State { is_stopped: true, ..State::default() });
        drop(before);
    }
}

impl State {
    /// Takes the senders of updates to this run and to those before it in its chain. A later run, which a reset may
    /// have made, keeps its own.
    fn take_sent_up_to(&mut self, run: RunNo, chain: &Name) -> Vec<UpdateWaiter> {
        let Some(updates) = self.updates.get_mut(chain) else { return Vec::new() };
        let mut taken = Vec::new();
        updates.retain(|_, waiters| {
            taken.extend(waiters.extract_if(.., |waiter| waiter.run <= run));
            !waiters.is_empty()
        });
        if updates.is_empty() {
            self.updates.remove(chain);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> UpdateAnswer {
        Ok(UpdateStage::Completed(Ok(Payload::default())))
    }

    #[test]
    fn an_update_handed_on_twice_is_answered_by_whichever_run_of_the_chain_answers_it() {
        let waiters = Waiters::new();
        let chain = Name::from("first");
        let mut waiting = waiters.for_update((RunNo(1), &chain), "u".into(), WaitFor::Completed);
        let continued = Outcome::Completed(Payload::default());
        waiters.run_closed(RunNo(1), &chain, Status::ContinuedAsNew, &continued);
        waiters.run_closed(RunNo(2), &chain, Status::ContinuedAsNew, &continued);
        assert!(waiting.try_recv().is_err(), "the chain goes on, and so does the update");
        waiters.update_answered(&chain, &"u".into(), &answer());
        assert_eq!(waiting.try_recv().unwrap(), answer());
    }

    #[test]
    fn an_update_of_a_chain_that_ends_fails_and_others_go_on_waiting() {
        let waiters = Waiters::new();
        let mut ended = waiters.for_update((RunNo(1), &"a".into()), "u".into(), WaitFor::Completed);
        let mut other = waiters.for_update((RunNo(1), &"b".into()), "u".into(), WaitFor::Completed);
        waiters.run_closed(RunNo(1), &"a".into(), Status::Completed, &Outcome::Completed(Payload::default()));
        assert!(matches!(ended.try_recv().unwrap(), Ok(UpdateStage::Completed(Err(_)))));
        assert!(other.try_recv().is_err());
    }

    /// A reset ends a run and makes another of the same chain, which may have updates of its own before the engine
    /// handles the end of the first.
    #[test]
    fn an_update_to_a_later_run_of_the_chain_is_not_concerned_by_the_end_of_an_earlier_one() {
        let waiters = Waiters::new();
        let chain = Name::from("first");
        let mut old = waiters.for_update((RunNo(1), &chain), "u".into(), WaitFor::Completed);
        let mut new = waiters.for_update((RunNo(2), &chain), "u".into(), WaitFor::Completed);
        waiters.run_closed(RunNo(1), &chain, Status::Terminated, &Outcome::Completed(Payload::default()));
        waiters.run_stuck(RunNo(1), &chain, "stuck");
        assert!(old.try_recv().is_ok());
        assert!(new.try_recv().is_err());
        waiters.update_answered(&chain, &"u".into(), &answer());
        assert_eq!(new.try_recv().unwrap(), answer());
    }

    #[test]
    fn update_to_a_run_that_is_reset_is_answered_by_the_new_run() {
        let waiters = Waiters::new();
        let chain = Name::from("first");
        let mut waiting = waiters.for_update((RunNo(1), &chain), "u".into(), WaitFor::Completed);
        let mut dropped = waiters.for_update((RunNo(1), &chain), "dropped".into(), WaitFor::Completed);
        waiters.run_reset(RunNo(1), RunNo(2), &chain, &BTreeSet::from(["dropped".into()]));
        waiters.run_closed(RunNo(1), &chain, Status::Terminated, &Outcome::Completed(Payload::default()));
        assert!(waiting.try_recv().is_err());
        assert!(dropped.try_recv().is_ok(), "the new run does not have it");
        waiters.update_answered(&chain, &"u".into(), &answer());
        assert_eq!(waiting.try_recv().unwrap(), answer());
    }

    #[test]
    fn senders_that_no_longer_wait_are_forgotten() {
        let waiters = Waiters::new();
        let chain = Name::from("first");
        drop(waiters.for_result(RunNo(1), false));
        let kept = waiters.for_result(RunNo(1), true);
        waiters.forget_result(RunNo(1));
        assert_eq!(waiters.0.lock().results[&RunNo(1)].len(), 1);
        drop(kept);
        waiters.forget_result(RunNo(1));
        assert!(waiters.0.lock().results.is_empty());
        drop(waiters.for_update((RunNo(1), &chain), "u".into(), WaitFor::Completed));
        waiters.forget_update(&chain, &"u".into());
        assert!(waiters.0.lock().updates.is_empty());
    }

    /// A caller that comes after the end would wait for ever.
    #[test]
    fn callers_that_come_after_the_engine_has_stopped_are_not_kept_waiting() {
        let waiters = Waiters::new();
        let mut before = waiters.for_result(RunNo(1), false);
        waiters.stop();
        let mut after = waiters.for_result(RunNo(1), false);
        let mut update = waiters.for_update((RunNo(1), &"first".into()), "u".into(), WaitFor::Completed);
        for receiver in [&mut before, &mut after] {
            assert_eq!(receiver.try_recv().map(drop), Err(oneshot::error::TryRecvError::Closed));
        }
        assert_eq!(update.try_recv().map(drop), Err(oneshot::error::TryRecvError::Closed));
    }
}
