//! A run in memory, and what the bridge keeps beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dacapo_client::StuckCause;
use dacapo_core::{
    CallSite, CancelType, Command, CommandKind, CompleteUpdate, ContinueAsNew, Failure, Job, Name, Operation, Outcome,
    Payload, Resolution, Run, Seq, Signal, Timestamp, TurnDone, Update, to_stored,
};
use dacapo_worker::RunName;

use super::commands::{Translation, check_headers, side_effect_attempt, start_timer};
use super::promises::{Promises, Resolve};
use super::refusal::Refusal;
use super::side_effects::{self, Next, NextAttempt, SideEffects};
use crate::convert::payload_from_proto;
use crate::numbers::{from_temporal, to_temporal};
use crate::proto::activation::{InitializeWorkflow, ResolveActivity};
use crate::proto::activity::activity_resolution::Status;
use crate::proto::commands::workflow_command::Variant;
use crate::proto::commands::{self, WorkflowCommand};
use crate::reserved::{LEFT_SIGNALS, PINS};

/// The encoding of data in the form of our records.
const STORED: Name = Name::from_static("binary/dacapo-stored");
/// The most bytes of signals that a run hands on: the server takes no larger payload, by default.
const MOST_LEFT: usize = 2_000_000;

/// A run between two activations.
pub(crate) struct CachedRun {
    pub(crate) name: Arc<RunName>,
    pub(crate) run: Run,
    /// The flags of the run's settings, which the first completion names.
    pub(crate) flags: Vec<u32>,
    pub(crate) state: BridgeState,
}

/// The bridge's knowledge of a run: it follows from the run's activations and completions alone.
#[derive(Default)]
pub(crate) struct BridgeState {
    /// The ids by which the server knows updates that are not answered.
    pub(crate) updates: BTreeMap<Name, String>,
    /// Updates of this activation that are neither accepted nor rejected yet, and their names.
    undecided: BTreeMap<Name, Name>,
    pub(crate) promises: Promises,
    pub(crate) side_effects: SideEffects,
    /// The snapshot that the run published last.
    pub(crate) published: Option<Payload>,
    /// The header with the settings that the start pins: the run that goes on keeps them.
    pins: Option<Payload>,
    /// Activities that have no result and were not cancelled, without those that may be abandoned: to drop these is no command.
    open_activities: BTreeMap<Seq, (Name, CallSite)>,
    /// Local activities that have no result, and whether the workflow has cancelled them.
    open_local: BTreeMap<Seq, bool>,
    now: Timestamp,
}

/// The consequences of an activation.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Commands for the server, in order.
    pub(crate) commands: Vec<WorkflowCommand>,
    /// Attempts of side effects, whose closures the run may have.
    pub(crate) attempts: Vec<NextAttempt>,
    /// Operations whose closures are not needed any more.
    pub(crate) resolved: BTreeSet<Seq>,
}

impl BridgeState {
    /// The state at the start of a run.
    pub(crate) fn of(init: &InitializeWorkflow) -> Self {
        let pins = init.headers.get(PINS).cloned().map(payload_from_proto);
        Self { pins, ..Self::default() }
    }

    /// Takes what an activation says of side effects out of its jobs. Returns the jobs of the run.
    pub(crate) fn take_side_effects(
        &mut self,
        now: Timestamp,
        jobs: Vec<Job>,
        fired: &[u32],
        outbox: &mut Outbox,
    ) -> Vec<Job> {
        self.now = now;
        for number in fired {
            if let Some(next) = self.side_effects.timer_fired(*number) {
                self.follow(next, outbox);
            }
        }
        jobs.into_iter().filter_map(|job| self.without_side_effect(job, outbox)).collect()
    }

    /// Returns the job, unless it is the end of an attempt after which another one follows.
    fn without_side_effect(&mut self, job: Job, outbox: &mut Outbox) -> Option<Job> {
        match job {
            Job::Resolve { seq, resolution: Resolution::SideEffect(outcome), .. } => {
                match self.side_effects.attempt_ended(to_temporal(seq), outcome)? {
                    Next::Resolve(seq, outcome) => {
                        outbox.resolved.insert(seq);
                        Some(Job::resolve(seq, Resolution::SideEffect(outcome)))
                    }
                    next => {
                        self.follow(next, outbox);
                        None
                    }
                }
            }
            Job::Resolve { seq, ref resolution, .. } => {
                if matches!(resolution, Resolution::Activity(_) | Resolution::Backoff { .. }) {
                    self.open_activities.remove(&seq);
                    self.open_local.remove(&seq);
                }
                Some(job)
            }
            other => Some(other),
        }
    }

    fn follow(&mut self, next: Next, outbox: &mut Outbox) {
        match next {
            Next::Pause(number, pause) => {
                outbox.commands.push(start_timer(number, pause).into());
            }
            Next::Attempt(attempt) => self.attempt(attempt, outbox),
            Next::Resolve(..) => {}
        }
    }

    fn attempt(&mut self, attempt: NextAttempt, outbox: &mut Outbox) {
        let NextAttempt { command, activity_id, number, .. } = &attempt;
        outbox.commands.push(side_effect_attempt(&command.name, activity_id.clone(), *number).into());
        outbox.attempts.push(attempt);
    }

    /// Translates a turn that was played.
    ///
    /// # Errors
    /// Why the turn cannot be carried out on a Temporal cluster.
    pub(crate) fn turn(
        &mut self,
        now: Timestamp,
        done: &TurnDone,
        to: &Target<'_>,
        outbox: &mut Outbox,
    ) -> Result<(), Refusal> {
        let unsupported = |why: String| Refusal::new(StuckCause::Unsupported, why);
        self.now = now;
        if let Some(published) = &done.published {
            self.published = Some(published.clone());
        }
        for command in &done.commands {
            check_headers(command).map_err(unsupported)?;
            self.note(command);
            if let CommandKind::AcceptUpdate { update } = &command.kind {
                self.undecided.remove(update);
            }
            if let CommandKind::SideEffect(scheduled) = &command.kind {
                outbox.attempts.push(self.side_effects.begin(scheduled, now));
            }
            if let CommandKind::Cancel(cancel) = &command.kind
                && cancel.operation == Operation::SideEffect
            {
                outbox.resolved.insert(cancel.seq);
                outbox.commands.extend(self.cancelled_side_effect(cancel.seq));
                continue;
            }
            if command.kind.is_terminal() {
                self.check_detached(done).map_err(unsupported)?;
                self.refuse_left(done, to, outbox);
            }
            let translated = match &command.kind {
                CommandKind::ContinueAsNew(next) => {
                    let kind = CommandKind::ContinueAsNew(Box::new(self.handed_on(next, &done.leftover)?));
                    self.translation(to).command(&Command { kind, ..command.clone() })
                }
                _ => self.translation(to).command(command),
            };
            outbox.commands.extend(translated.map_err(unsupported)?);
            self.answered(&command.kind);
        }
        for rejected in &done.rejected {
            self.refuse_update(&rejected.update, &rejected.failure, to, outbox);
        }
        Ok(())
    }

    fn translation<'a>(&'a self, to: &'a Target<'_>) -> Translation<'a> {
        Translation {
            namespace: to.namespace,
            queue: to.queue,
            start_to_close: to.start_to_close,
            updates: &self.updates,
        }
    }

    /// Notes what a command opens.
    fn note(&mut self, command: &Command) {
        let mut open = |seq, name: &Name| drop(self.open_activities.insert(seq, (name.clone(), command.site.clone())));
        match &command.kind {
            CommandKind::Activity(c) if c.cancel != CancelType::Abandon => open(c.seq, &c.activity),
            CommandKind::LocalActivity(c) => {
                if c.cancel != CancelType::Abandon {
                    open(c.seq, &c.activity);
                }
                self.open_local.insert(c.seq, false);
            }
            CommandKind::Cancel(c) if c.operation == Operation::Promise => self.promises.close(c.seq),
            CommandKind::Cancel(c) => {
                self.open_activities.remove(&c.seq);
                self.open_local.entry(c.seq).and_modify(|is_cancelled| *is_cancelled = true);
            }
            CommandKind::Promise(c) => self.promises.open(c),
            _ => {}
        }
    }

    /// Returns the command with all that the next run is given. The server keeps no header, so the pinned settings are passed on here,
    /// and with them the signals that no wait and no handler took.
    ///
    /// # Errors
    /// The signals are too many for the server.
    fn handed_on(&self, next: &ContinueAsNew, leftover: &[Signal]) -> Result<ContinueAsNew, Refusal> {
        let mut next = next.clone();
        if let Some(pins) = &self.pins {
            next.headers.insert(PINS.into(), pins.clone());
        }
        if !leftover.is_empty() {
            let signals = to_stored(leftover);
            check_left(leftover.len(), signals.len())?;
            next.headers.insert(LEFT_SIGNALS.into(), Payload::new(STORED, signals.into()));
        }
        Ok(next)
    }

    fn answered(&mut self, command: &CommandKind) {
        if let CommandKind::CompleteUpdate(answer) = command {
            self.updates.remove(&answer.update);
        }
    }

    fn cancelled_side_effect(&mut self, seq: Seq) -> Option<WorkflowCommand> {
        let (number, is_timer) = self.side_effects.cancel(seq)?;
        Some(match is_timer {
            true => Variant::CancelTimer(commands::CancelTimer { seq: number }).into(),
            false => Variant::RequestCancelLocalActivity(commands::RequestCancelLocalActivity { seq: number }).into(),
        })
    }

    /// The server ends the activities of a run with the run, so one that was detached would be lost.
    fn check_detached(&self, done: &TurnDone) -> Result<(), String> {
        match self.open_activities.iter().find(|(seq, _)| !done.dropped.contains(seq)) {
            None => Ok(()),
            Some((_, (activity, site))) => Err(format!(
                "activity {activity:?} was detached (at {site}) and has not ended when the workflow ends; a Temporal cluster ends the \
                 activities of a run with the run: await it, or do its work in a child with `ParentClose::Abandon`"
            )),
        }
    }

    /// Refuses updates that no handler has begun to handle when the run continues as new: the server keeps none for the next run.
    fn refuse_left(&mut self, done: &TurnDone, to: &Target<'_>, outbox: &mut Outbox) {
        for update in &done.left_updates {
            // One that came in an earlier task was refused there.
            if self.updates.contains_key(&update.id) {
                self.refuse_update(&update.id, &continued_as_new(&update.id, &update.name), to, outbox);
            }
        }
    }

    /// Notes a message that has to be decided on in this activation.
    pub(crate) fn received(&mut self, job: &Job) {
        if let Job::Update(update) = job
            && !update.accepted
        {
            self.undecided.insert(update.id.clone(), update.name.clone());
        }
    }

    /// Refuses updates that the turn left undecided: the workflow has returned to continue as new and waits for its handlers. The server
    /// takes no answer to them in a later task.
    pub(crate) fn refuse_undecided(&mut self, to: &Target<'_>, outbox: &mut Outbox) {
        for (id, name) in std::mem::take(&mut self.undecided) {
            self.refuse_update(&id, &continued_as_new(&id, &name), to, outbox);
        }
    }

    fn refuse_update(&mut self, update: &Name, failure: &Failure, to: &Target<'_>, outbox: &mut Outbox) {
        outbox.commands.push(self.translation(to).refused_update(update, failure));
        self.updates.remove(update);
        self.undecided.remove(update);
    }

    /// Resolves a promise for the update that asks for it. Returns the job for the run, if there is such a promise, and adds the
    /// answer to the update.
    pub(crate) fn resolve_promise(&mut self, update: &Update, to: &Target<'_>, outbox: &mut Outbox) -> Option<Job> {
        let (resolved, update) = (Resolve::of(update).and_then(|resolve| self.promises.resolve(resolve)), &update.id);
        match resolved {
            Ok((seq, outcome)) => {
                let accepted = CommandKind::AcceptUpdate { update: update.clone() };
                let answer = Outcome::Completed(Payload::empty());
                let done =
                    CommandKind::CompleteUpdate(Box::new(CompleteUpdate { update: update.clone(), outcome: answer }));
                for kind in [accepted, done] {
                    let command = Command { kind, unit: dacapo_core::UnitId::root(), site: CallSite::default() };
                    outbox.commands.extend(self.translation(to).command(&command).ok().flatten());
                }
                self.updates.remove(update);
                Some(Job::resolve(seq, Resolution::Promise(outcome)))
            }
            Err(failure) => {
                self.refuse_update(update, &failure, to, outbox);
                None
            }
        }
    }

    /// Whether a local activity or an attempt of a side effect is open. Its workflow task is lost if the run leaves memory.
    pub(crate) fn has_local_work(&self) -> bool {
        !self.open_local.is_empty() || self.side_effects.has_open_attempts()
    }

    /// Whether this result says that local work was cancelled which the workflow wants: core cancels what waits for its next attempt when
    /// it takes a run out of memory.
    pub(crate) fn is_cut_off(&self, result: &ResolveActivity) -> bool {
        let status = result.result.as_ref().and_then(|result| result.status.as_ref());
        let is_wanted = self.side_effects.is_wanted(result.seq)
            || self.open_local.get(&from_temporal(result.seq)).is_some_and(|is_cancelled| !is_cancelled);
        matches!(status, Some(Status::Cancelled(_))) && is_wanted
    }

    /// Whether the run has to leave memory now, to be played again: a side effect waits for its next attempt, and its closure is spent.
    pub(crate) fn is_to_leave(&self, has_closure: impl Fn(Seq) -> bool) -> bool {
        !self.has_local_work() && self.side_effects.pausing().any(|seq| !has_closure(seq))
    }

    /// Whether this number is of a side effect, in any of its attempts.
    pub(crate) fn is_side_effect(&self, number: u32) -> bool {
        self.side_effects.has(number)
    }
}

/// # Errors
/// The signals that a run would hand on are too large together.
fn check_left(count: usize, bytes: usize) -> Result<(), Refusal> {
    if bytes <= MOST_LEFT {
        return Ok(());
    }
    let why = format!(
        "the workflow continues as new and leaves {count} signals that it has not taken, {bytes} bytes together; at most {MOST_LEFT} bytes \
         can be handed on to the next run: take signals before continuing as new, or send references in place of large inputs"
    );
    Err(Refusal::new(StuckCause::Limit, why))
}

/// Why an update that no handler has begun to handle is refused.
fn continued_as_new(id: &Name, name: &Name) -> Failure {
    let why = format!(
        "the workflow continued as new before update {name:?} of id {id:?} was handled; send it again, to the run that goes on"
    );
    Failure::application(why).typed("ContinuedAsNew")
}

/// Where a run's commands go.
pub(crate) struct Target<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) queue: &'a str,
    pub(crate) start_to_close: std::time::Duration,
}

/// Whether a number is that of a timer which this backend started.
pub(crate) fn is_own_timer(number: u32) -> bool {
    side_effects::is_own(number)
}
