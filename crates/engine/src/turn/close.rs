//! Closing a run by a turn: its open operations end with it, its parent and its callers get the outcome, and the next
//! run of the chain begins.

use dacapo_core::{
    CancelType, ChildFailed, Command, CommandKind, ContinueAsNew, Continued, Failure, FailureKind, Job, Lineage, Name,
    Outcome, Payload, Resolution, RetryState, Seq, Start, Timestamp, TurnDone, TurnRecord,
};
use dacapo_store::{Closing, NewMessage, NewRun, Parent, Status, TimerKind};
use dacapo_worker::pause_after;

use crate::encode::encode;
use crate::run::new_run::{new_run, run_timers, seed_of};
use crate::run::open_operations::{Open, OpenOperations};
use crate::turn::plan::{Plan, Planner, Unsupported, activity_timers};
use crate::turn::update_outcome::{UpdateOutcome, update_key};

impl Planner<'_> {
    pub(crate) fn close(
        &self,
        plan: &mut Plan,
        record: &TurnRecord,
        last: &Command,
        done: &TurnDone,
    ) -> Result<(), Unsupported> {
        let after = self.open_after(record);
        let (status, outcome) = match &last.kind {
            CommandKind::Complete { result } => (Status::Completed, Outcome::Completed(result.clone())),
            CommandKind::Fail { failure } => (Status::Failed, Outcome::Failed(failure.clone())),
            CommandKind::CancelRun { failure } => (Status::Cancelled, Outcome::Failed(failure.clone())),
            CommandKind::ContinueAsNew(_) => (Status::ContinuedAsNew, Outcome::Completed(Payload::empty())),
            _ => unreachable!("only terminal commands close a run"),
        };
        let next = match (&last.kind, &outcome) {
            (CommandKind::ContinueAsNew(next), _) => Some(self.continued(&after, next, record.now)),
            (CommandKind::Fail { .. }, Outcome::Failed(failure)) => self.tried_again(&after, failure, record.now),
            _ => None,
        };
        // Open operations end with the run, except those that the workflow detached or abandons.
        let own: Vec<Seq> = plan.write.tasks.iter().map(|task| task.seq).collect();
        for seq in &done.dropped {
            match own.contains(seq) {
                true => self.cancel_new(plan, record.now, *seq, ""),
                false => {
                    if let Some(Open::Activity { command, .. }) = self.open.operations.get(seq)
                        && command.cancel != CancelType::Abandon
                    {
                        self.end_task(plan, *seq);
                        plan.effects.cancelled.push((*seq, false));
                    }
                    plan.effects.cancelled_local.push((*seq, false));
                }
            }
        }
        plan.write.timers.clear();
        for (seq, open) in &self.open.operations {
            match open {
                Open::Timer { due } => plan.write.ended_timers.push((*due, TimerKind::Sleep(*seq))),
                Open::Activity { command, scheduled, .. } => {
                    plan.write.ended_timers.extend(activity_timers(command, *scheduled));
                }
                _ => {}
            }
        }
        plan.write.ended_timers.extend(run_timers(&self.open.start));
        let is_left = |update: &&Name| done.left_updates.iter().any(|left| left.id == **update);
        for update in after.updates.iter().filter(|update| !is_left(update)) {
            let outcome = Outcome::Failed(Box::new(unanswered(update, next.is_some())));
            plan.write.outcomes.push((update_key(update), encode(UpdateOutcome::Completed(outcome.clone()))));
            plan.effects.answered.push((update.clone(), outcome));
        }
        // The result of a run that continues as another, by its own command or for another try, is the id of that run.
        let (status, result, carried) = match &next {
            Some(next) => {
                let next = Outcome::Completed(Payload::json(format!("\"{}\"", next.run_id)));
                (Status::ContinuedAsNew, next, carried(done, record.now))
            }
            None => (status, outcome.clone(), Vec::new()),
        };
        plan.effects.closed = Some((status, result.clone()));
        plan.write.close = Some(Closing {
            status,
            result: encode(&result),
            to_parent: self.info.parent.as_ref().map(|parent| encode(self.to_parent(parent, outcome))),
            next: next.map(Box::new),
            carried,
        });
        Ok(())
    }

    /// Makes the job for the parent: a failed child is a failure of its own kind, with the child's as its cause.
    fn to_parent(&self, parent: &Parent, outcome: Outcome) -> Job {
        let outcome = match outcome {
            Outcome::Completed(result) => Outcome::Completed(result),
            Outcome::Failed(failure) => {
                let child = ChildFailed {
                    workflow: self.info.name.workflow.clone(),
                    workflow_id: self.info.name.workflow_id.clone(),
                    run_id: self.info.name.run_id.clone(),
                    retry: RetryState::Unspecified,
                };
                let message = format!("child workflow {} failed", self.info.name.workflow);
                let wrapped = Failure::new(FailureKind::Child(Box::new(child)), message).caused_by(*failure);
                Outcome::Failed(Box::new(wrapped))
            }
        };
        Job::resolve(parent.seq, Resolution::Child(outcome))
    }

    fn successor(&self, open: &OpenOperations, because: Continued, started: Timestamp) -> Start {
        let run_id = (self.run_id)();
        let before = open.start.lineage.as_deref().cloned().unwrap_or_default();
        let lineage = Lineage {
            continued_from: Some(self.info.name.run_id.clone()),
            continued_because: Some(because),
            first_run_id: self.info.first_run_id.clone(),
            ..before
        };
        Start {
            run_id: run_id.clone(),
            seed: seed_of(&run_id),
            started,
            attempt: 1,
            memo: open.memo.clone(),
            search_attributes: open.attributes.clone(),
            lineage: Some(Box::new(lineage)),
            ..(*open.start).clone()
        }
    }

    /// Makes the next run of the chain: the parent of this one waits for it now.
    fn next_run(&self, start: Start, now: Timestamp) -> NewRun {
        let mut new = new_run(start, &self.info.pins, now);
        new.parent.clone_from(&self.info.parent);
        new.first_run_id = self.info.first_run_id.clone();
        new
    }

    fn continued(&self, open: &OpenOperations, next: &ContinueAsNew, now: Timestamp) -> NewRun {
        let started = next.start_delay.map_or(now, |delay| now.after(delay));
        let mut start = self.successor(open, Continued::Workflow, started);
        if !next.workflow.is_empty() {
            start.workflow = next.workflow.clone();
        }
        if let Some(queue) = &next.queue {
            start.queue = queue.clone();
        }
        start.input.clone_from(&next.input);
        if let Some(memo) = &next.memo {
            start.memo.clone_from(memo);
        }
        if let Some(attributes) = &next.search_attributes {
            start.search_attributes.clone_from(attributes);
        }
        if !next.headers.is_empty() {
            start.headers.clone_from(&next.headers);
        }
        let mut terms = start.terms.as_deref().cloned().unwrap_or_default();
        terms.run_timeout = next.run_timeout.or(terms.run_timeout);
        terms.task_timeout = next.task_timeout.or(terms.task_timeout);
        terms.retry = next.retry.clone().or(terms.retry);
        start.terms = Some(Box::new(terms));
        self.next_run(start, now)
    }

    /// Makes the run that tries it again after a failure, if its terms say so.
    fn tried_again(&self, open: &OpenOperations, failure: &Failure, now: Timestamp) -> Option<NewRun> {
        let retry = open.start.terms.as_ref()?.retry.clone()?;
        let attempt = open.start.attempt.max(1);
        let pause = pause_after(&retry, attempt, failure)?;
        let due = now.after(pause);
        let expires = open.start.terms.as_ref().and_then(|terms| terms.expires);
        if expires.is_some_and(|expires| due >= expires) {
            return None;
        }
        let mut start = self.successor(open, Continued::Retry, due);
        start.attempt = attempt + 1;
        // The new run begins as its predecessor began: with the memo and attributes that one was started with.
        start.memo.clone_from(&open.start.memo);
        start.search_attributes.clone_from(&open.start.search_attributes);
        if let Some(lineage) = &mut start.lineage {
            lineage.last_failure = Some(Box::new(failure.clone()));
        }
        Some(self.next_run(start, now))
    }
}

/// The failure for the sender of an update that was accepted and not answered when its run ended.
fn unanswered(update: &Name, is_continued: bool) -> Failure {
    match is_continued {
        true => Failure::application(format!(
            "update {update:?} was accepted, and the run continued as new before it was answered: its handler was \
             abandoned. Send it again with another request id, or let handlers end before the workflow continues as new"
        ))
        .typed("ContinuedAsNew"),
        false => Failure::application("the run ended before the update was answered").typed("RunClosed"),
    }
}

/// Makes the messages that go on with the next run: signals that no code took, and updates that no handler began to
/// handle. An update keeps its key, so that its sender finds it when it is sent again.
fn carried(done: &TurnDone, now: Timestamp) -> Vec<NewMessage> {
    let signals = done.leftover.iter().enumerate().map(|(number, signal)| NewMessage {
        key: format!("carried:{number}").into(),
        sent: now,
        job: encode(Job::Signal(Box::new(signal.clone()))),
    });
    let updates = done.left_updates.iter().map(|update| NewMessage {
        key: update_key(&update.id),
        sent: now,
        job: encode(Job::Update(Box::new(update.clone()))),
    });
    signals.chain(updates).collect()
}
