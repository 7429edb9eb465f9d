//! From a turn's commands to one write: tasks, timers, children, messages; and the effects that it has once it is committed.

use std::fmt;

use dacapo_client::{Capabilities, Feature};
use dacapo_core::{
    CancelType, Command, CommandKind, Job, Lineage, Name, Pins, RelatedRun, ScheduleActivity, Seq, Signal, Start,
    StartChild, Target, Terms, Timestamp, TurnDone, TurnRecord,
};
use dacapo_store::{NewMessage, NewRun, NewTask, OutgoingMessage, Parent, RunNo, TaskNo, TimerKind, TurnOf, TurnWrite};

use crate::encode::encode;
use crate::run::info::RunInfo;
use crate::run::message::Message;
use crate::run::new_run::{new_run, seed_of};
use crate::run::open_operations::{Open, OpenOperations, waits};
use crate::turn::outcome::PlannedEffects;
use crate::turn::update_outcome::{UpdateOutcome, update_key};

/// A turn that was played, ready to be committed.
pub(crate) struct Plan {
    pub(crate) write: TurnWrite,
    /// The effects that it has once it is committed.
    pub(crate) effects: PlannedEffects,
}

impl Plan {
    /// Sets the activities behind the tasks of the write. They are open operations by now, unless the turn itself ended
    /// them.
    pub(crate) fn share_activities(&mut self, record: &TurnRecord, open: &OpenOperations) {
        let activity =
            |task: &NewTask| match (open.operations.get(&task.seq), &record.commands[task.position as usize].kind) {
                (Some(Open::Activity { command, .. }), _) => Some(command.clone()),
                (_, CommandKind::Activity(activity)) => Some(activity.clone()),
                _ => None,
            };
        self.effects.tasks = self.write.tasks.iter().filter_map(activity).collect();
    }

    /// Writes the timer that stands for operations without a row: local work, and requests to stop. While a run has
    /// any, the timer wakes it in a process that begins after a crash.
    pub(crate) fn mark_without_row(&mut self, before: Option<Timestamp>, after: Option<Timestamp>) {
        let after = after.filter(|_| self.write.close.is_none());
        if before != after {
            self.write.ended_timers.extend(before.map(|due| (due, TimerKind::Retry)));
            self.write.timers.extend(after.map(|due| (due, TimerKind::Retry)));
        }
    }
}

/// The data that a plan is made from.
pub(crate) struct Planner<'a> {
    /// The record of the turn.
    pub(crate) record: &'a TurnRecord,
    pub(crate) run: RunNo,
    pub(crate) info: &'a RunInfo,
    /// The name of the backend and its features.
    pub(crate) capabilities: &'a Capabilities,
    /// The open operations as they were before the turn.
    pub(crate) open: &'a OpenOperations,
    /// The messages that the turn took.
    pub(crate) messages: &'a [Message],
    /// The number of the task behind an activity.
    pub(crate) task_of: &'a dyn Fn(Seq) -> Option<TaskNo>,
    /// Whether another task of this queue is offered to all nodes, after so many of this turn.
    pub(crate) offers: &'a dyn Fn(&Name, usize) -> bool,
    /// Makes run ids.
    pub(crate) run_id: &'a dyn Fn() -> Name,
    /// The pins of new runs of a workflow.
    pub(crate) pins: &'a dyn Fn(&str) -> Pins,
}

/// The priority of an activity's task: its own, or that of its run.
pub(crate) fn task_priority(activity: &ScheduleActivity, start: &Start) -> i32 {
    match activity.priority.key {
        0 => start.terms.as_ref().map_or(0, |terms| terms.priority.key),
        own => own,
    }
}

/// The reason why the engine cannot do what a turn asks for: the turn is not committed, and the run is stuck with it.
pub(crate) type Unsupported = String;

impl Planner<'_> {
    /// Makes the write for a turn that was played.
    pub(crate) fn plan(&self, bytes: Vec<u8>, done: &TurnDone) -> Result<Plan, Unsupported> {
        let record = self.record;
        let write = TurnWrite {
            epoch: self.info.epoch,
            published: done.published.as_ref().map(encode),
            ..TurnWrite::new(TurnOf::Run(self.run), record.number, record.now, bytes)
        };
        let mut plan = Plan { write, effects: PlannedEffects::default() };
        self.take(&mut plan);
        let mut after = None;
        for (position, command) in record.commands.iter().enumerate() {
            if matches!(command.kind, CommandKind::Memo(_)) && after.is_none() {
                after = Some(self.open_after(record));
            }
            self.command(&mut plan, record.now, position, command, after.as_ref())?;
        }
        for rejected in &done.rejected {
            let outcome = UpdateOutcome::Rejected(rejected.failure.clone());
            plan.write.outcomes.push((update_key(&rejected.update), encode(&outcome)));
        }
        plan.effects.rejected.clone_from(&done.rejected);
        if let Some(last) = record.commands.last().filter(|command| command.kind.is_terminal()) {
            self.close(&mut plan, record, last, done)?;
        }
        Ok(plan)
    }

    /// The start of the run, which may be among the jobs of this turn.
    fn start(&self) -> &Start {
        for job in &self.record.jobs {
            if let Job::Start(start) = job {
                return start;
            }
        }
        &self.open.start
    }

    /// The open operations as they are after the turn.
    pub(crate) fn open_after(&self, record: &TurnRecord) -> OpenOperations {
        let mut open = self.open.clone();
        open.enter(record, 0);
        open
    }

    /// Ends what the turn took.
    fn take(&self, plan: &mut Plan) {
        for message in self.messages {
            match message {
                Message::Stored { no, job } => {
                    plan.write.taken.push(*no);
                    match job {
                        Job::Start(start) => plan.write.ended_timers.push((start.started, TimerKind::Start)),
                        // A result that came while the run was stuck is a stored message.
                        Job::Resolve { seq, .. } => self.end_activity_timers(plan, *seq),
                        _ => {}
                    }
                }
                Message::Result { task, seq, .. } => {
                    plan.write.ended_tasks.push(*task);
                    self.end_activity_timers(plan, *seq);
                }
                Message::Timer { seq, due } => plan.write.ended_timers.push((*due, TimerKind::Sleep(*seq))),
                Message::Local { .. } => {}
            }
        }
    }

    /// Ends a task. The task queue knows its number, unless its queue is not served here or its result is on its way.
    pub(crate) fn end_task(&self, plan: &mut Plan, seq: Seq) {
        match (self.task_of)(seq) {
            Some(task) => plan.write.ended_tasks.push(task),
            None => plan.write.ended_activities.push(seq),
        }
    }

    fn end_timer(&self, plan: &mut Plan, seq: Seq) {
        if let Some(Open::Timer { due }) = self.open.operations.get(&seq) {
            plan.write.ended_timers.push((*due, TimerKind::Sleep(seq)));
        }
    }

    fn end_activity_timers(&self, plan: &mut Plan, seq: Seq) {
        if let Some(Open::Activity { command, scheduled, .. }) = self.open.operations.get(&seq) {
            plan.write.ended_timers.extend(activity_timers(command, *scheduled));
        }
    }

    fn command(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        position: usize,
        command: &Command,
        after: Option<&OpenOperations>,
    ) -> Result<(), Unsupported> {
        match &command.kind {
            CommandKind::Activity(activity) => {
                let queue = activity.queue.clone().unwrap_or_else(|| self.info.name.queue.clone());
                plan.write.tasks.push(NewTask {
                    offered: (self.offers)(&queue, plan.write.tasks.len()),
                    seq: activity.seq,
                    queue,
                    ready: now,
                    priority: task_priority(activity, self.start()),
                    position: position as u32,
                });
                plan.write.timers.extend(activity_timers(activity, now));
            }
            CommandKind::Timer(timer) => {
                plan.write.timers.push((now.after(timer.duration), TimerKind::Sleep(timer.seq)));
            }
            CommandKind::Child(child) => plan.write.children.push((child.seq, self.child(child, now)?)),
            CommandKind::SignalExternal(signal) => {
                let job = Job::Signal(Box::new(Signal {
                    name: signal.signal.clone(),
                    input: signal.input.clone(),
                    identity: self.info.name.workflow_id.clone(),
                    headers: signal.headers.clone(),
                }));
                self.send(plan, Some(signal.seq), false, &signal.target, now, &job);
            }
            CommandKind::CancelExternal(cancel) => {
                let job = Job::Cancel { reason: cancel.reason.clone() };
                self.send(plan, Some(cancel.seq), true, &cancel.target, now, &job);
            }
            CommandKind::Nexus(call) => {
                let what = format_args!("Nexus operation {}/{} cannot be called", call.service, call.operation);
                return Err(self.lacks(Feature::Nexus, what));
            }
            CommandKind::SideEffect(effect) => {
                self.require(Feature::SideEffects, format_args!("side effect {:?} cannot run", effect.name))?;
            }
            CommandKind::Promise(promise) => {
                self.require(Feature::Promises, format_args!("promise {:?} cannot be opened", promise.name))?;
            }
            CommandKind::Cancel(cancel) => self.cancel(plan, now, cancel.seq, &cancel.reason),
            CommandKind::SearchAttributes(changes) => {
                plan.write.attributes.extend(changes.clone());
            }
            CommandKind::Memo(_) => plan.write.memo = after.map(|after| encode(&after.memo)),
            CommandKind::AcceptUpdate { update } => plan.effects.accepted.push(update.clone()),
            CommandKind::CompleteUpdate(done) => {
                let outcome = UpdateOutcome::Completed(done.outcome.clone());
                plan.write.outcomes.push((update_key(&done.update), encode(&outcome)));
                plan.effects.answered.push((done.update.clone(), done.outcome.clone()));
            }
            CommandKind::LocalActivity(_)
            | CommandKind::Patch(_)
            | CommandKind::State(_)
            | CommandKind::Complete { .. }
            | CommandKind::Fail { .. }
            | CommandKind::CancelRun { .. }
            | CommandKind::ContinueAsNew(_) => {}
            // A command of a later core: storing it without doing it would lose it silently.
            other => return Err(format!("this engine does not know the command {:?}", other.word())),
        }
        Ok(())
    }

    fn send(&self, plan: &mut Plan, seq: Option<Seq>, is_cancel: bool, to: &Target, sent: Timestamp, job: &Job) {
        // The key is the sender's operation: sent twice, it arrives once.
        let key = match seq {
            Some(seq) => format!("{}#{}", self.info.name.run_id, seq.0),
            None => format!("{}-cancels", self.info.name.run_id),
        };
        let message = NewMessage { key: key.into(), sent, job: encode(job) };
        plan.write.sends.push(OutgoingMessage { seq, is_cancel, to: to.clone(), message });
    }

    fn cancel(&self, plan: &mut Plan, now: Timestamp, seq: Seq, reason: &str) {
        match self.open.operations.get(&seq) {
            Some(Open::Timer { .. }) => self.end_timer(plan, seq),
            Some(Open::Activity { command, .. }) => {
                let waits = waits(command.cancel);
                if !waits {
                    self.end_task(plan, seq);
                    self.end_activity_timers(plan, seq);
                }
                plan.effects.cancelled.push((seq, waits));
            }
            Some(Open::Child { command, .. }) => self.cancel_child(plan, command, now, reason),
            Some(Open::Local { command, .. }) => plan.effects.cancelled_local.push((seq, waits(command.cancel))),
            Some(Open::SideEffect { .. }) => plan.effects.cancelled_local.push((seq, false)),
            Some(Open::External | Open::Promise(_)) => {}
            // Begun and cancelled in one turn: an activity or a timer is not written, unless the workflow waits for its
            // outcome.
            None => self.cancel_new(plan, now, seq, reason),
        }
    }

    /// The activity behind a new task.
    fn activity(&self, task: &NewTask) -> Option<&ScheduleActivity> {
        match &self.record.commands[task.position as usize].kind {
            CommandKind::Activity(activity) => Some(activity),
            _ => None,
        }
    }

    pub(crate) fn cancel_new(&self, plan: &mut Plan, now: Timestamp, seq: Seq, reason: &str) {
        if let Some(place) = plan.write.tasks.iter().position(|task| task.seq == seq) {
            let is_waited_for = self.activity(&plan.write.tasks[place]).is_some_and(|activity| waits(activity.cancel));
            match is_waited_for {
                true => plan.effects.cancelled.push((seq, true)),
                false => {
                    plan.write.tasks.remove(place);
                    plan.write.timers.retain(|(_, kind)| !concerns(*kind, seq));
                }
            }
        }
        plan.write.timers.retain(|(_, kind)| *kind != TimerKind::Sleep(seq));
        let child = plan.write.children.iter().find(|(child, _)| *child == seq);
        if let Some(workflow_id) = child.map(|(_, new)| new.workflow_id.clone()) {
            let job = Job::Cancel { reason: reason.to_owned() };
            self.send(plan, None, true, &Target::Child { workflow_id }, now, &job);
        }
        plan.effects.cancelled_local.push((seq, false));
    }

    fn cancel_child(&self, plan: &mut Plan, child: &StartChild, now: Timestamp, reason: &str) {
        if child.cancel != CancelType::Abandon {
            let job = Job::Cancel { reason: reason.to_owned() };
            let target = Target::Child { workflow_id: child.workflow_id.clone() };
            self.send(plan, None, true, &target, now, &job);
        }
    }

    /// The text for a command that needs a feature which this engine lacks.
    fn lacks(&self, feature: Feature, what: fmt::Arguments<'_>) -> Unsupported {
        format!("{what}: {}", self.capabilities.lacks(feature))
    }

    /// Refuses a command that needs a feature which this backend lacks.
    fn require(&self, feature: Feature, what: fmt::Arguments<'_>) -> Result<(), Unsupported> {
        if self.capabilities.has(feature) { Ok(()) } else { Err(self.lacks(feature, what)) }
    }

    fn child(&self, child: &StartChild, now: Timestamp) -> Result<NewRun, Unsupported> {
        if let Some(line) = &child.cron {
            let what = format_args!("child workflow {} cannot start by the cron line {line:?}", child.workflow);
            return Err(self.lacks(Feature::Cron, what));
        }
        let run_id = (self.run_id)();
        let own = RelatedRun {
            namespace: Name::default(),
            workflow_id: self.info.name.workflow_id.clone(),
            run_id: self.info.name.run_id.clone(),
        };
        let root = self.start().lineage.as_ref().and_then(|lineage| lineage.root.clone());
        let lineage = Lineage { parent: Some(own.clone()), root: Some(root.unwrap_or(own)), ..Lineage::default() };
        let terms = Terms {
            execution_timeout: child.execution_timeout,
            run_timeout: child.run_timeout,
            task_timeout: child.task_timeout,
            expires: child.execution_timeout.map(|timeout| now.after(timeout)),
            retry: child.retry.clone(),
            priority: child.priority.clone(),
            ..Terms::default()
        };
        let start = Start {
            workflow: child.workflow.clone(),
            workflow_id: child.workflow_id.clone(),
            run_id: run_id.clone(),
            input: child.input.clone(),
            seed: seed_of(&run_id),
            queue: child.queue.clone().unwrap_or_else(|| self.info.name.queue.clone()),
            started: now,
            attempt: 1,
            headers: child.headers.clone(),
            memo: child.memo.clone(),
            search_attributes: child.search_attributes.clone(),
            identity: self.info.name.workflow_id.clone(),
            lineage: Some(Box::new(lineage)),
            terms: Some(Box::new(terms)),
        };
        let parent = Parent { run: self.run, seq: child.seq, close: child.parent_close };
        let mut new = new_run(start, &(self.pins)(&child.workflow), now);
        new.parent = Some(parent);
        new.reuse = child.id_reuse;
        Ok(new)
    }
}

/// The timers that hold for all attempts of an activity together.
pub(crate) fn activity_timers(
    activity: &ScheduleActivity,
    at: Timestamp,
) -> impl Iterator<Item = (Timestamp, TimerKind)> {
    let close = activity.timeouts.schedule_to_close.map(|t| (at.after(t), TimerKind::ScheduleToClose(activity.seq)));
    let start = activity.timeouts.schedule_to_start.map(|t| (at.after(t), TimerKind::ScheduleToStart(activity.seq)));
    close.into_iter().chain(start)
}

fn concerns(kind: TimerKind, seq: Seq) -> bool {
    kind == TimerKind::ScheduleToClose(seq) || kind == TimerKind::ScheduleToStart(seq)
}
