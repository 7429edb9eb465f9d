//! From a turn's commands to one write: tasks, timers, children, mail, and what is to be done once it is committed.

use std::sync::Arc;

use dacapo_core::{
    CancelType, ChildFailed, Command, CommandKind, ContinueAsNew, Continued, Failure, FailureKind, Job, Lineage, Name,
    Outcome, Payload, Pins, Rejected, Resolution, Retry, RetryState, RunRef, ScheduleActivity, Seq, Signal, Start,
    StartChild, Target, Terms, Timestamp, TurnDone, TurnRecord,
};
use dacapo_store::{
    Closing, Conflict, MailNo, NewMail, NewRun, NewTask, Parent, RunNo, Send, Status, TaskNo, TimerKind, TurnOf,
    TurnWrite,
};

use crate::book::{Book, Open, waits};
use crate::live::{About, Arrival};

/// A turn that was played, ready to be committed.
pub(crate) struct Plan {
    pub(crate) write: TurnWrite,
    pub(crate) after: After,
}

/// What is to be done once the turn is committed.
#[derive(Default)]
pub(crate) struct After {
    /// The activities behind the write's tasks, in their order.
    pub(crate) tasks: Vec<Arc<ScheduleActivity>>,
    /// Activities that were cancelled; whether their outcome is waited for.
    pub(crate) cancelled: Vec<(Seq, bool)>,
    /// Local work that was cancelled; whether its outcome is waited for.
    pub(crate) cancelled_locals: Vec<(Seq, bool)>,
    /// Updates that were accepted, answered, rejected.
    pub(crate) accepted: Vec<Name>,
    pub(crate) answered: Vec<(Name, Outcome)>,
    pub(crate) rejected: Vec<Rejected>,
    /// How the run ended.
    pub(crate) closed: Option<(Status, Outcome)>,
}

impl Plan {
    /// Local work is in no row of its own, nor is a request to stop. While there are such, a timer stands for them: it
    /// wakes the run in a process that begins after a crash.
    pub(crate) fn mark_wakeful(&mut self, before: Option<Timestamp>, after: Option<Timestamp>) {
        let after = after.filter(|_| self.write.close.is_none());
        if before != after {
            self.write.ended_timers.extend(before.map(|due| (due, TimerKind::Retry)));
            self.write.timers.extend(after.map(|due| (due, TimerKind::Retry)));
        }
    }
}

/// What a translation needs to know.
pub(crate) struct Scene<'a> {
    pub(crate) run: RunNo,
    pub(crate) about: &'a About,
    /// The book as it was before the turn.
    pub(crate) book: &'a Book,
    pub(crate) arrivals: &'a [Arrival],
    /// The number of the task behind an activity.
    pub(crate) task_of: &'a dyn Fn(Seq) -> Option<TaskNo>,
    /// Makes run ids.
    pub(crate) run_id: &'a dyn Fn() -> Name,
    /// The pins of new runs of a workflow.
    pub(crate) pins: &'a dyn Fn(&str) -> Pins,
}

/// Something the engine cannot do: the turn is not committed, and the run says why.
pub(crate) type Unsupported = String;

impl Scene<'_> {
    /// The write for a turn that was played.
    pub(crate) fn plan(&self, record: &TurnRecord, bytes: Vec<u8>, done: &TurnDone) -> Result<Plan, Unsupported> {
        let write = TurnWrite {
            run: TurnOf::Run(self.run),
            node: Default::default(),
            epoch: self.about.epoch,
            turn: record.number,
            at: record.now,
            record: bytes,
            tasks: Vec::new(),
            ended_tasks: Vec::new(),
            timers: Vec::new(),
            ended_timers: Vec::new(),
            taken: Vec::new(),
            arrived: Vec::new(),
            outcomes: Vec::new(),
            children: Vec::new(),
            sends: Vec::new(),
            attributes: Vec::new(),
            memo: None,
            published: done.published.as_ref().map(encode),
            close: None,
        };
        let mut plan = Plan { write, after: After::default() };
        self.take(&mut plan);
        let mut book = None;
        for (position, command) in record.commands.iter().enumerate() {
            if matches!(command.kind, CommandKind::Memo(_)) && book.is_none() {
                book = Some(self.book_after(record));
            }
            self.command(&mut plan, record.now, position, command, book.as_ref())?;
        }
        for rejected in &done.rejected {
            let outcome = Answered::Rejected(rejected.failure.clone());
            plan.write.outcomes.push((update_key(&rejected.update), encode(&outcome)));
        }
        plan.after.rejected.clone_from(&done.rejected);
        if let Some(last) = record.commands.last().filter(|command| command.kind.is_terminal()) {
            self.close(&mut plan, record, last, done)?;
        }
        Ok(plan)
    }

    fn book_after(&self, record: &TurnRecord) -> Book {
        let mut book = self.book.clone();
        book.enter(record, 0);
        book
    }

    /// What the turn took is over.
    fn take(&self, plan: &mut Plan) {
        for arrival in self.arrivals {
            match arrival {
                Arrival::Mail { no, job } => {
                    plan.write.taken.push(*no);
                    match job {
                        Job::Start(start) => plan.write.ended_timers.push((start.started, TimerKind::Start)),
                        // A result that came while the run was parked is mail.
                        Job::Resolve { seq, .. } => self.end_activity_timers(plan, *seq),
                        _ => {}
                    }
                }
                Arrival::Result { task, seq, .. } => {
                    plan.write.ended_tasks.push(*task);
                    self.end_activity_timers(plan, *seq);
                }
                Arrival::Timer { seq, due } => plan.write.ended_timers.push((*due, TimerKind::Sleep(*seq))),
                Arrival::Local { .. } => {}
            }
        }
    }

    fn end_timer(&self, plan: &mut Plan, seq: Seq) {
        if let Some(Open::Timer { due }) = self.book.open.get(&seq) {
            plan.write.ended_timers.push((*due, TimerKind::Sleep(seq)));
        }
    }

    fn end_activity_timers(&self, plan: &mut Plan, seq: Seq) {
        if let Some(Open::Activity { command, scheduled, .. }) = self.book.open.get(&seq) {
            plan.write.ended_timers.extend(activity_timers(command, *scheduled));
        }
    }

    fn command(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        position: usize,
        command: &Command,
        book: Option<&Book>,
    ) -> Result<(), Unsupported> {
        match &command.kind {
            CommandKind::Activity(activity) => {
                plan.write.tasks.push(NewTask {
                    seq: activity.seq,
                    queue: activity.queue.clone().unwrap_or_else(|| self.about.queue.clone()),
                    ready: now,
                    priority: activity.priority.key,
                    position: position as u32,
                });
                plan.write.timers.extend(activity_timers(activity, now));
                plan.after.tasks.push(Arc::new((**activity).clone()));
            }
            CommandKind::Timer(timer) => {
                plan.write.timers.push((now.after(timer.duration), TimerKind::Sleep(timer.seq)));
            }
            CommandKind::Child(child) => plan.write.children.push((child.seq, self.child(child, now)?)),
            CommandKind::SignalExternal(signal) => {
                let job = Job::Signal(Box::new(Signal {
                    name: signal.signal.clone(),
                    input: signal.input.clone(),
                    identity: self.about.workflow_id.clone(),
                    headers: signal.headers.clone(),
                }));
                self.send(plan, Some(signal.seq), false, &signal.target, now, &job);
            }
            CommandKind::CancelExternal(cancel) => {
                let job = Job::Cancel { reason: cancel.reason.clone() };
                self.send(plan, Some(cancel.seq), true, &cancel.target, now, &job);
            }
            CommandKind::Nexus(call) => {
                return Err(format!(
                    "the embedded engine has no Nexus: it cannot call {}/{}. Call an activity instead, or run this \
                     workflow on a Temporal cluster",
                    call.service, call.operation
                ));
            }
            CommandKind::Cancel(cancel) => self.cancel(plan, now, cancel.seq, &cancel.reason),
            CommandKind::SearchAttributes(changes) => {
                let changes = changes.iter().map(|(name, value)| (name.clone(), value.as_ref().map(encode)));
                plan.write.attributes.extend(changes);
            }
            CommandKind::Memo(_) => plan.write.memo = book.map(|book| encode(&book.memo)),
            CommandKind::AcceptUpdate { update } => plan.after.accepted.push(update.clone()),
            CommandKind::CompleteUpdate(done) => {
                let outcome = Answered::Completed(done.outcome.clone());
                plan.write.outcomes.push((update_key(&done.update), encode(&outcome)));
                plan.after.answered.push((done.update.clone(), done.outcome.clone()));
            }
            CommandKind::LocalActivity(_)
            | CommandKind::Run(_)
            | CommandKind::Promise(_)
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
            Some(seq) => format!("{}#{}", self.about.run_id, seq.0),
            None => format!("{}-cancels", self.about.run_id),
        };
        let mail = NewMail { key: key.into(), sent, job: encode(job) };
        plan.write.sends.push(Send { seq, is_cancel, to: to.clone(), mail });
    }

    fn cancel(&self, plan: &mut Plan, now: Timestamp, seq: Seq, reason: &str) {
        match self.book.open.get(&seq) {
            Some(Open::Timer { .. }) => self.end_timer(plan, seq),
            Some(Open::Activity { command, .. }) => {
                let waits = waits(command.cancel);
                if !waits {
                    plan.write.ended_tasks.extend((self.task_of)(seq));
                    self.end_activity_timers(plan, seq);
                }
                plan.after.cancelled.push((seq, waits));
            }
            Some(Open::Child { command, .. }) => self.cancel_child(plan, command, now, reason),
            Some(Open::Local { command, .. }) => plan.after.cancelled_locals.push((seq, waits(command.cancel))),
            Some(Open::Run { .. }) => plan.after.cancelled_locals.push((seq, false)),
            Some(Open::External | Open::Promise(_)) => {}
            // Begun and given up in one turn: it never was, except for those who still want its outcome.
            None => self.cancel_new(plan, now, seq, reason),
        }
    }

    fn cancel_new(&self, plan: &mut Plan, now: Timestamp, seq: Seq, reason: &str) {
        if let Some(place) = plan.write.tasks.iter().position(|task| task.seq == seq) {
            let activity = plan.after.tasks[place].clone();
            match waits(activity.cancel) {
                true => plan.after.cancelled.push((seq, true)),
                false => {
                    plan.write.tasks.remove(place);
                    plan.after.tasks.remove(place);
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
        plan.after.cancelled_locals.push((seq, false));
    }

    fn cancel_child(&self, plan: &mut Plan, child: &StartChild, now: Timestamp, reason: &str) {
        if child.cancel != CancelType::Abandon {
            let job = Job::Cancel { reason: reason.to_owned() };
            let target = Target::Child { workflow_id: child.workflow_id.clone() };
            self.send(plan, None, true, &target, now, &job);
        }
    }

    fn child(&self, child: &StartChild, now: Timestamp) -> Result<NewRun, Unsupported> {
        refuse_cron(child.cron.as_ref())?;
        let run_id = (self.run_id)();
        let own = RunRef {
            namespace: Name::default(),
            workflow_id: self.about.workflow_id.clone(),
            run_id: self.about.run_id.clone(),
        };
        let root = self.book.start.lineage.as_ref().and_then(|lineage| lineage.root.clone());
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
            queue: child.queue.clone().unwrap_or_else(|| self.about.queue.clone()),
            started: now,
            attempt: 1,
            headers: child.headers.clone(),
            memo: child.memo.clone(),
            search_attributes: child.search_attributes.clone(),
            identity: self.about.workflow_id.clone(),
            lineage: Some(Box::new(lineage)),
            terms: Some(Box::new(terms)),
        };
        let parent = Parent { run: self.run, seq: child.seq, close: child.parent_close };
        let mut new = new_run(start, &(self.pins)(&child.workflow), now);
        new.parent = Some(parent);
        new.reuse = child.id_reuse;
        Ok(new)
    }

    fn close(&self, plan: &mut Plan, record: &TurnRecord, last: &Command, done: &TurnDone) -> Result<(), Unsupported> {
        let book = self.book_after(record);
        let (status, outcome) = match &last.kind {
            CommandKind::Complete { result } => (Status::Completed, Outcome::Completed(result.clone())),
            CommandKind::Fail { failure } => (Status::Failed, Outcome::Failed(failure.clone())),
            CommandKind::CancelRun { failure } => (Status::Cancelled, Outcome::Failed(failure.clone())),
            CommandKind::ContinueAsNew(_) => (Status::ContinuedAsNew, Outcome::Completed(Payload::empty())),
            _ => unreachable!("only terminal commands close a run"),
        };
        let next = match (&last.kind, &outcome) {
            (CommandKind::ContinueAsNew(next), _) => Some(self.continued(&book, next, record.now)),
            (CommandKind::Fail { .. }, Outcome::Failed(failure)) => self.tried_again(&book, failure, record.now),
            _ => None,
        };
        // What is still open ends with the run, except what was let go on purpose.
        let own: Vec<Seq> = plan.write.tasks.iter().map(|task| task.seq).collect();
        for seq in &done.dropped {
            match own.contains(seq) {
                true => self.cancel_new(plan, record.now, *seq, ""),
                false => {
                    if let Some(Open::Activity { command, .. }) = self.book.open.get(seq)
                        && command.cancel != CancelType::Abandon
                    {
                        plan.write.ended_tasks.extend((self.task_of)(*seq));
                        plan.after.cancelled.push((*seq, false));
                    }
                    plan.after.cancelled_locals.push((*seq, false));
                }
            }
        }
        plan.write.timers.clear();
        for (seq, open) in &self.book.open {
            match open {
                Open::Timer { due } => plan.write.ended_timers.push((*due, TimerKind::Sleep(*seq))),
                Open::Activity { command, scheduled, .. } => {
                    plan.write.ended_timers.extend(activity_timers(command, *scheduled));
                }
                _ => {}
            }
        }
        plan.write.ended_timers.extend(run_timers(&self.book.start));
        for update in &book.updates {
            let failure = Failure::application("the run ended before the update was answered").typed("RunClosed");
            let outcome = Outcome::Failed(Box::new(failure));
            plan.write.outcomes.push((update_key(update), encode(Answered::Completed(outcome.clone()))));
            plan.after.answered.push((update.clone(), outcome));
        }
        // A run that goes on as another, by its own wish or for another try, says as which.
        let (status, result, carried) = match &next {
            Some(next) => {
                let next = Outcome::Completed(Payload::json(format!("\"{}\"", next.run_id)));
                (Status::ContinuedAsNew, next, carried(&done.leftover, record.now))
            }
            None => (status, outcome.clone(), Vec::new()),
        };
        plan.after.closed = Some((status, result.clone()));
        plan.write.close = Some(Closing {
            status,
            result: encode(&result),
            to_parent: self.about.parent.as_ref().map(|parent| encode(self.to_parent(parent, outcome))),
            next: next.map(Box::new),
            carried,
        });
        Ok(())
    }

    /// What a parent is told: a failed child is a failure of its own kind, with the child's as its cause.
    fn to_parent(&self, parent: &Parent, outcome: Outcome) -> Job {
        let outcome = match outcome {
            Outcome::Completed(result) => Outcome::Completed(result),
            Outcome::Failed(failure) => {
                let child = ChildFailed {
                    workflow: self.about.workflow.clone(),
                    workflow_id: self.about.workflow_id.clone(),
                    run_id: self.about.run_id.clone(),
                    retry: RetryState::Unspecified,
                };
                let message = format!("child workflow {} failed", self.about.workflow);
                let wrapped = Failure::new(FailureKind::Child(Box::new(child)), message).caused_by(*failure);
                Outcome::Failed(Box::new(wrapped))
            }
        };
        Job::Resolve { seq: parent.seq, resolution: Resolution::Child(outcome) }
    }

    fn successor(&self, book: &Book, because: Continued, started: Timestamp) -> Start {
        let run_id = (self.run_id)();
        let before = book.start.lineage.as_deref().cloned().unwrap_or_default();
        let lineage = Lineage {
            continued_from: Some(self.about.run_id.clone()),
            continued_because: Some(because),
            first_run_id: self.about.first_run_id.clone(),
            ..before
        };
        Start {
            run_id: run_id.clone(),
            seed: seed_of(&run_id),
            started,
            attempt: 1,
            memo: book.memo.clone(),
            search_attributes: book.attributes.clone(),
            lineage: Some(Box::new(lineage)),
            ..(*book.start).clone()
        }
    }

    /// The next run of the chain: the parent of this one waits for it now.
    fn next_run(&self, start: Start, now: Timestamp) -> NewRun {
        let mut new = new_run(start, &self.about.pins, now);
        new.parent.clone_from(&self.about.parent);
        new.first_run_id = self.about.first_run_id.clone();
        new
    }

    fn continued(&self, book: &Book, next: &ContinueAsNew, now: Timestamp) -> NewRun {
        let started = next.start_delay.map_or(now, |delay| now.after(delay));
        let mut start = self.successor(book, Continued::Workflow, started);
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

    /// The run that tries it again after a failure, if its terms say so.
    fn tried_again(&self, book: &Book, failure: &Failure, now: Timestamp) -> Option<NewRun> {
        let retry = book.start.terms.as_ref()?.retry.clone()?;
        let attempt = book.start.attempt.max(1);
        let pause = pause_after(&retry, attempt, failure)?;
        let due = now.after(pause);
        let expires = book.start.terms.as_ref().and_then(|terms| terms.expires);
        if expires.is_some_and(|expires| due >= expires) {
            return None;
        }
        let mut start = self.successor(book, Continued::Retry, due);
        start.attempt = attempt + 1;
        // It begins as its predecessor began: with the memo and attributes it was started with.
        start.memo.clone_from(&book.start.memo);
        start.search_attributes.clone_from(&book.start.search_attributes);
        if let Some(lineage) = &mut start.lineage {
            lineage.last_failure = Some(Box::new(failure.clone()));
        }
        Some(self.next_run(start, now))
    }
}

/// What became of an update, as its mail keeps it.
#[derive(Clone, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
pub(crate) enum Answered {
    #[n(0)]
    Completed(#[n(0)] Outcome),
    #[n(1)]
    Rejected(#[n(0)] Failure),
}

pub(crate) fn update_key(update: &Name) -> Name {
    format!("update:{update}").into()
}

/// Signals that nobody took go on with the next run.
fn carried(leftover: &[Signal], now: Timestamp) -> Vec<NewMail> {
    let mail = |(number, signal): (usize, &Signal)| NewMail {
        key: format!("carried:{number}").into(),
        sent: now,
        job: encode(Job::Signal(Box::new(signal.clone()))),
    };
    leftover.iter().enumerate().map(mail).collect()
}

/// A run to be started with this job, now or when its time has come.
pub(crate) fn new_run(start: Start, pins: &Pins, now: Timestamp) -> NewRun {
    let delay = (start.started > now).then_some((start.started, TimerKind::Start));
    let timers = run_timers(&start).chain(delay).collect();
    let attributes = start.search_attributes.iter().map(|(name, value)| (name.clone(), encode(value))).collect();
    NewRun {
        run_id: start.run_id.clone(),
        workflow_id: start.workflow_id.clone(),
        workflow: start.workflow.clone(),
        queue: start.queue.clone(),
        started: start.started,
        pins: encode(pins),
        parent: None,
        first_run_id: Name::default(),
        reuse: Default::default(),
        conflict: Conflict::Fail,
        request: None,
        timers,
        memo: encode(&start.memo),
        attributes,
        start: encode(Job::Start(Box::new(start))),
    }
}

/// The timers that begin with a run.
pub(crate) fn run_timers(start: &Start) -> impl Iterator<Item = (Timestamp, TimerKind)> {
    let terms = start.terms.as_deref();
    let run = terms.and_then(|terms| terms.run_timeout).map(|t| (start.started.after(t), TimerKind::RunTimeout));
    let all = terms.and_then(|terms| terms.expires).map(|due| (due, TimerKind::ExecutionTimeout));
    run.into_iter().chain(all)
}

/// The timers of an activity: those that hold for all its attempts together.
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

/// How long to wait after a failed attempt; none if it was the last.
pub(crate) fn pause_after(retry: &Retry, attempt: u32, failure: &Failure) -> Option<std::time::Duration> {
    let last = retry.attempts > 0 && attempt >= retry.attempts;
    let pointless = failure.non_retryable
        || failure.is_cancelled()
        || failure.type_name.as_ref().is_some_and(|name| retry.not_retryable.contains(name));
    if last || pointless {
        return None;
    }
    let longest = retry.longest.as_secs_f64();
    let seconds = retry.initial.as_secs_f64() * retry.factor.powi(attempt.saturating_sub(1).min(1 << 20) as i32);
    Some(std::time::Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, longest) } else { longest }))
}

pub(crate) fn refuse_cron(cron: Option<&Name>) -> Result<(), Unsupported> {
    match cron {
        None => Ok(()),
        Some(line) => Err(format!(
            "the embedded engine knows no cron lines ({line:?}): sleep in a loop and continue as new, or start runs from \
             your own scheduler"
        )),
    }
}

/// A run's seed follows from its run id, so that no other choice has to be kept.
pub(crate) fn seed_of(run_id: &str) -> u64 {
    // FNV-1a: spread over the id's bytes; the core mixes it further.
    run_id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

pub(crate) fn encode<T: minicbor::Encode<()>>(value: T) -> Vec<u8> {
    minicbor::to_vec(value).expect("writing to memory cannot fail")
}

/// Mail that a void turn took: nothing of it is recorded, and it is over.
pub(crate) fn settle(arrivals: &[Arrival], rejected: &[Rejected]) -> Vec<(MailNo, Name, Option<Vec<u8>>)> {
    let answer = |job: &Job| match job {
        Job::Update(update) => rejected
            .iter()
            .find(|rejected| rejected.update == update.id)
            .map(|rejected| (update_key(&update.id), encode(Answered::Rejected(rejected.failure.clone())))),
        _ => None,
    };
    let mail = arrivals.iter().filter_map(|arrival| match arrival {
        Arrival::Mail { no, job } => Some((*no, answer(job))),
        _ => None,
    });
    mail.map(|(no, answer)| match answer {
        Some((key, outcome)) => (no, key, Some(outcome)),
        None => (no, Name::default(), None),
    })
    .collect()
}
