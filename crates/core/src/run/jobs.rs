//! Jobs: checked all together before any is applied, then applied in order before any code runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;

use super::slot::{SlotId, Value, What};
use super::state::{Life, State};
use crate::job::{Resolution, StartOutcome};
use crate::{Job, JobError, Name, Seq};

/// The state of an operation after the jobs checked so far.
#[derive(Clone, Copy, Default)]
struct Progress {
    started: bool,
    resolved: bool,
}

impl State {
    /// Checks that all jobs fit the run in its current state. Changes nothing.
    pub(crate) fn check_jobs(&self, workflow: &Name, jobs: &[Job]) -> Result<(), JobError> {
        let mut progress: BTreeMap<Seq, Progress> = BTreeMap::new();
        let mut updates: BTreeSet<&Name> = BTreeSet::new();
        if self.life == Life::New && !matches!(jobs.first(), Some(Job::Start(_))) {
            return Err(JobError::NotStarted);
        }
        for (place, job) in jobs.iter().enumerate() {
            match job {
                Job::Start(_) if self.life != Life::New || place > 0 => return Err(JobError::StartedTwice),
                Job::Start(start) if start.workflow != *workflow => {
                    return Err(JobError::OtherWorkflow { expected: workflow.clone(), found: start.workflow.clone() });
                }
                Job::Update(update) if !updates.insert(&update.id) || self.update_is_open(&update.id) => {
                    return Err(JobError::UpdateTwice(update.id.clone()));
                }
                Job::Resolve { seq, resolution, .. } => {
                    let before = progress.get(seq).copied();
                    let after = self.check_resolution(*seq, resolution, before)?;
                    if jobs.len() > 1 {
                        progress.insert(*seq, after);
                    }
                }
                Job::Start(_)
                | Job::Patch { .. }
                | Job::Seed { .. }
                | Job::Signal(_)
                | Job::Update(_)
                | Job::Cancel { .. } => {}
            }
        }
        Ok(())
    }

    /// Checks one resolution, given the operation's state after earlier jobs of the turn; returns the state after it.
    fn check_resolution(
        &self,
        seq: Seq,
        resolution: &Resolution,
        before: Option<Progress>,
    ) -> Result<Progress, JobError> {
        let Some(slot) = self.slots.get(&SlotId::Operation(seq)) else {
            return match () {
                () if seq.0 >= self.next_seq => Err(JobError::UnknownSeq(seq)),
                () if self.tombstones.contains(seq) => Ok(Progress::default()),
                () => Err(JobError::ResolvedTwice(seq)),
            };
        };
        let What::Operation(operation, _) = slot.what else { return Err(JobError::UnknownSeq(seq)) };
        if !resolution.fits(operation) {
            return Err(JobError::WrongKind { seq, operation, resolution: resolution.word() });
        }
        let before = before.unwrap_or(Progress { started: slot.started, resolved: slot.arrived.is_some() });
        match resolution {
            _ if before.resolved => Err(JobError::ResolvedTwice(seq)),
            Resolution::ChildStarted(_) | Resolution::NexusStarted(_) if before.started => {
                Err(JobError::ResolvedTwice(seq))
            }
            Resolution::ChildStarted(start) | Resolution::NexusStarted(start) => {
                Ok(Progress { started: true, resolved: matches!(start, StartOutcome::Failed(_)) })
            }
            Resolution::Child(_) | Resolution::Nexus(_) if !before.started => Err(JobError::NotYetStarted(seq)),
            _ => Ok(Progress { resolved: true, ..before }),
        }
    }

    /// Applies one job. Returns the wakers that the caller wakes outside the lock.
    pub(crate) fn apply(&mut self, job: Job) -> Vec<Waker> {
        let came = self.next_ordinal();
        match job {
            Job::Start(start) => {
                self.seed = start.seed;
                self.start = Arc::new(*start);
                self.life = Life::Open;
            }
            Job::Patch { id } => drop(self.facts_mut().notified.insert(id)),
            Job::Seed { seed } => {
                self.seed = seed;
                self.units.values_mut().for_each(|unit| unit.rng = None);
            }
            Job::Signal(signal) => self.receive_signal(came, signal),
            Job::Update(update) => self.receive_update(came, update),
            Job::Cancel { reason } => return self.cancel_scope(super::cancel_scope::RUN, came, reason),
            Job::Resolve { seq, resolution, .. } => self.resolve(seq, came, resolution),
        }
        Vec::new()
    }

    fn resolve(&mut self, seq: Seq, came: crate::Ordinal, resolution: Resolution) {
        let slot = SlotId::Operation(seq);
        if !self.slots.contains_key(&slot) {
            // A late result of a cancelled operation: already checked.
            let goes_on = matches!(
                resolution,
                Resolution::ChildStarted(StartOutcome::As(_)) | Resolution::NexusStarted(StartOutcome::As(_))
            );
            if let Some(ending) = self.ending.as_mut().filter(|_| !goes_on) {
                ending.dropped.retain(|other| *other != seq);
            }
            return;
        }
        self.drop_closure(seq);
        match resolution {
            Resolution::Timer => self.deliver(slot, came, Value::Done),
            Resolution::Activity(outcome)
            | Resolution::SideEffect(outcome)
            | Resolution::Child(outcome)
            | Resolution::Nexus(outcome)
            | Resolution::Promise(outcome) => self.deliver(slot, came, Value::Outcome(outcome)),
            Resolution::Backoff { attempt, pause, first_scheduled } => {
                self.deliver(slot, came, Value::Backoff { attempt, pause, first_scheduled });
            }
            Resolution::SignalExternal { failure } | Resolution::CancelExternal { failure } => {
                self.deliver(slot, came, Value::Delivered(failure));
            }
            Resolution::ChildStarted(started) | Resolution::NexusStarted(started) => {
                if let StartOutcome::Failed(failure) = &started {
                    self.deliver(slot, came, Value::Outcome(crate::Outcome::Failed(failure.clone())));
                } else if let Some(slot) = self.slots.get_mut(&slot) {
                    slot.started = true;
                }
                self.deliver(SlotId::Start(seq), came, Value::Started(started));
            }
        }
    }
}
