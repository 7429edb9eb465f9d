//! Committing turns, and what follows from a committed turn. Nothing a turn decided is visible before.

use std::sync::{Arc, Mutex, PoisonError};

use dacapo_store::{Refused, RunNo, StartedRun, StoreError, TaskNo, TimerKind, TimerRow, TurnWritten, Write, Written};

use crate::activity::task_queue::{Task, TaskState};
use crate::inner::Inner;
use crate::run::cache::may_leave;
use crate::run::cached_run::{Arrival, Body, Live, Stage};
use crate::run::open_operations::Open;
use crate::run::waiters::UpdateStage;
use crate::turn::plan::{After, Plan};
use crate::turn::update_outcome::{Answered, update_key};

/// A turn's part that is done after its commit, with what the write alone knew.
pub(crate) struct Follow {
    pub(crate) after: After,
    /// What is still held against the run.
    pub(crate) strikes: u32,
    pub(crate) timers: Vec<TimerRow>,
    pub(crate) ended_timers: Vec<TimerRow>,
}

impl Inner {
    /// Commits the turns of a run that are not committed, in order.
    pub(crate) fn commit(self: &Arc<Self>, live: Arc<Live>, mut body: Box<Body>) {
        let mut plans = std::mem::take(&mut body.held);
        let strikes = self.held_against(&live);
        plans.iter_mut().for_each(|plan| plan.write.strikes = strikes);
        let Some(last) = plans.pop() else { return self.rest(&live, Some(body)) };
        // A turn that was held back asks for nothing that others could see. If it is refused, so is the last.
        let trouble: Arc<Mutex<Option<StoreError>>> = Arc::default();
        for plan in plans {
            let trouble = trouble.clone();
            self.submit(Write::Turn(Box::new(plan.write)), move |_, result| {
                if let Err(error) = result {
                    trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
        let Plan { write, after } = last;
        let row = |(due, kind): &(_, _)| TimerRow { due: *due, run: live.no, kind: *kind };
        let follow = Follow {
            after,
            strikes,
            timers: write.timers.iter().map(row).collect(),
            ended_timers: write.ended_timers.iter().map(row).collect(),
        };
        self.submit(Write::Turn(Box::new(write)), move |this, result| {
            let earlier = trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (earlier, result) {
                (None, Ok(Written::Turn(written))) => this.committed(live, body, follow, *written),
                (None, Ok(other)) => unreachable!("a turn was answered with {other:?}"),
                (Some(error), _) | (None, Err(error)) => this.refused(live, body, error),
            }
        });
    }

    /// The turn is durable: now the world may see it.
    pub(crate) fn committed(
        self: &Arc<Self>,
        live: Arc<Live>,
        mut body: Box<Body>,
        follow: Follow,
        written: TurnWritten,
    ) {
        let mut state = live.lock();
        state.uncommitted.clear();
        state.unstick();
        drop(state);
        match follow.strikes {
            0 => self.end_trial(&live),
            _ => self.has_gone_on(live.no),
        }
        let closed = follow.after.closed.clone();
        self.follow(&live, &mut body, follow, &written);
        if live.lock().gone {
            self.drop_ended(live.no, &written.tasks);
        }
        match closed {
            Some((status, outcome)) => {
                self.closed(live.no, status, &outcome);
                let mut state = live.lock();
                state.stage = Stage::Idle;
                let late = std::mem::take(&mut state.inbox);
                drop(state);
                self.forget_late(live.no, late.into_iter().collect());
            }
            None => self.rest(&live, Some(body)),
        }
        // A turn says that the run goes on; one of its activities may still wait for somebody.
        self.mark_held(live.no);
        self.dispatch();
        self.drained();
    }

    /// The same for a run that somebody else is loading already: what it decided is done, and this copy of it goes.
    pub(crate) fn committed_beside(
        self: &Arc<Self>,
        live: &Live,
        mut body: Box<Body>,
        follow: Follow,
        written: &TurnWritten,
    ) {
        let closed = follow.after.closed.clone();
        self.follow(live, &mut body, follow, written);
        self.drop_ended(live.no, &written.tasks);
        if let Some((status, outcome)) = closed {
            self.closed(live.no, status, &outcome);
        }
        self.later(move |_| drop(body));
        self.dispatch();
    }

    fn follow(self: &Arc<Self>, live: &Live, body: &mut Body, follow: Follow, written: &TurnWritten) {
        let Follow { after, timers, ended_timers, .. } = follow;
        self.set_timers(&timers, &ended_timers);
        let mut desk = self.desk();
        for (no, command) in written.tasks.iter().zip(after.tasks) {
            let queue = command.queue.as_ref().unwrap_or(&body.about.queue);
            if !self.serves(queue) {
                continue;
            }
            let Some(Open::Activity { scheduled, turn, position, .. }) = body.book.open.get(&command.seq) else {
                continue;
            };
            let task = Task {
                no: *no,
                about: body.about.clone(),
                scheduled: *scheduled,
                priority: command.priority.key,
                attempt: 1,
                failure: None,
                details: None,
                state: TaskState::Ready,
                cancelled: None,
                strikes: 0,
                has_input: true,
                origin: (*turn, *position),
                command,
            };
            desk.add(live.no, task);
        }
        drop(desk);
        for (seq, waits) in after.cancelled {
            self.cancel_task(live.no, seq, waits);
        }
        self.cancel_locals(live.no, after.cancelled_locals);
        if after.closed.is_none() {
            self.start_locals(live, body);
        }
        let mut waits = self.waits();
        if let Some(next) = written.started.last().filter(|_| !after.left_updates.is_empty()) {
            waits.hand_over(live.no, next.run, &after.left_updates);
            drop(waits);
            self.tell_answered(next.run, &after.left_updates);
            waits = self.waits();
        }
        for update in &after.accepted {
            waits.accepted(live.no, update);
        }
        for (update, outcome) in after.answered {
            waits.answered(live.no, &update, &Ok(UpdateStage::Completed(outcome.into())));
        }
        for rejected in after.rejected {
            let answer = Err(crate::EngineError::UpdateRejected(Box::new(rejected.failure)));
            waits.answered(live.no, &rejected.update, &answer);
        }
        drop(waits);
        self.effects(written);
    }

    /// Somebody may have ended the run since its turn was committed, or have played it on and ended some of its tasks. Only
    /// the store knows: that a run left memory says nothing of its tasks.
    fn drop_ended(self: &Arc<Self>, run: RunNo, made: &[TaskNo]) {
        if made.is_empty() {
            return;
        }
        let stored = match self.store.tasks_of(run) {
            Ok(stored) => stored,
            Err(error) => return tracing::error!(%run, %error, "tasks cannot be read"),
        };
        self.give_up_tasks(run, |task| made.contains(&task) && stored.iter().all(|row| row.no != task));
    }

    /// The next run may have been faster than whoever handed its waiters over.
    fn tell_answered(&self, run: RunNo, updates: &[dacapo_core::Name]) {
        for update in updates {
            let mail = self.store.mail(run, &update_key(update)).ok().flatten();
            let answered = mail.and_then(|mail| mail.outcome).map(|bytes| minicbor::decode::<Answered>(&bytes));
            if let Some(Ok(answered)) = answered {
                self.waits().answered(run, update, &answered.stage());
            }
        }
    }

    pub(crate) fn set_timers(&self, timers: &[TimerRow], ended: &[TimerRow]) {
        if timers.is_empty() && ended.is_empty() {
            return;
        }
        let mut all = self.timers();
        let before = all.next();
        // As the store does: what begins and ends in one write is over.
        timers.iter().for_each(|row| all.add(*row));
        ended.iter().for_each(|row| all.remove(row));
        let next = all.next();
        drop(all);
        if let Some(next) = next.filter(|next| before.is_none_or(|before| *next < before)) {
            self.host.wake_at(next);
        }
    }

    /// What a write brought about in other runs.
    pub(crate) fn effects(self: &Arc<Self>, written: &TurnWritten) {
        for posted in &written.posted {
            self.deliver_posted(posted);
        }
        for started in written.started.iter().filter(|started| started.fresh) {
            self.started(started);
        }
        for run in &written.closed {
            self.closed_elsewhere(*run);
        }
    }

    /// A run whose start waits in its mailbox.
    pub(crate) fn started(self: &Arc<Self>, started: &StartedRun) {
        let run = started.run;
        let rows: Vec<_> = started.timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
        self.set_timers(&rows, &[]);
        self.poke(run);
    }

    /// The turn was not committed: the run in memory is ahead of the store, so it goes.
    fn refused(self: &Arc<Self>, live: Arc<Live>, body: Box<Body>, error: StoreError) {
        self.later(move |_| drop(body));
        match error {
            StoreError::Refused(refused @ (Refused::UnseenMail | Refused::TakenMail)) => {
                let mut state = live.lock();
                state.put_back_all();
                state.takes_all = refused == Refused::UnseenMail;
                drop(state);
                self.rest(&live, None);
            }
            StoreError::Refused(Refused::Closed(_) | Refused::NoSuchRun) => {
                self.closed_elsewhere(live.no);
                let taken = std::mem::take(&mut live.lock().uncommitted);
                self.forget_late(live.no, taken);
            }
            StoreError::Refused(refused) => {
                live.lock().put_back_all();
                self.park(live, format!("its turn was refused: {refused}"));
            }
            error => {
                let taken = std::mem::take(&mut live.lock().uncommitted);
                self.retry_later(live, taken, &error);
            }
        }
    }

    /// Puts a run at rest; it goes on at once if more came, and leaves memory if the cache says so.
    pub(crate) fn rest(self: &Arc<Self>, live: &Arc<Live>, body: Option<Box<Body>>) {
        let holds = body.as_ref().is_some_and(|body| !body.held.is_empty());
        let is_tried = live.lock().on_trial.is_some();
        // Where something is still held against it: whoever plays it next has to find that out.
        let keeps = match is_tried {
            true => holds || self.locals().is_at_work(live.no),
            false => holds || self.runs().keeps(),
        };
        if !is_tried || !keeps {
            self.end_trial(live);
        }
        let (body, dropped) = if keeps { (body, None) } else { (None, body) };
        let mut state = live.lock();
        state.stage = Stage::Idle;
        state.body = body;
        if state.has_work() {
            self.wake(live, &mut state);
            drop(state);
        } else {
            let leaves = state.body.is_none();
            drop(state);
            if leaves {
                self.leave(live);
            }
        }
        if let Some(body) = dropped {
            self.later(move |_| drop(body));
        }
        self.drained();
        loop {
            let leaves = self.runs().make_room();
            let Some(live) = leaves else { return };
            let body = live.lock().body.take();
            if let Some(body) = body {
                self.later(move |_| drop(body));
            }
        }
    }

    /// Whoever played a run is done with it, and it has nothing to keep in memory.
    pub(crate) fn retire(self: &Arc<Self>, live: &Arc<Live>) {
        self.end_trial(live);
        live.lock().stage = Stage::Idle;
        self.leave(live);
        self.drained();
    }

    /// Takes an entry that holds nothing out of memory, unless something came for it meanwhile. It may even be played by
    /// somebody else already, and is theirs then.
    pub(crate) fn leave(self: &Arc<Self>, live: &Arc<Live>) {
        let mut runs = self.runs();
        let mut state = live.lock();
        if state.gone || state.stage != Stage::Idle {
            return;
        }
        if state.has_work() {
            drop(runs);
            return self.wake(live, &mut state);
        }
        // It may have been played meanwhile and have a body again; that goes with it.
        if may_leave(&state) {
            state.gone = true;
            runs.remove(live.no);
        }
    }

    /// What came for a run after it closed is nobody's: its rows go.
    pub(crate) fn forget_late(self: &Arc<Self>, run: RunNo, late: Vec<Arrival>) {
        let tasks: Vec<_> = late
            .iter()
            .filter_map(|arrival| match arrival {
                Arrival::Result { task, .. } => Some(*task),
                _ => None,
            })
            .collect();
        let timers: Vec<_> = late
            .iter()
            .filter_map(|arrival| match arrival {
                Arrival::Timer { seq, due } => Some((*due, TimerKind::Sleep(*seq))),
                _ => None,
            })
            .collect();
        if tasks.is_empty() && timers.is_empty() {
            return;
        }
        let rows: Vec<TimerRow> = timers.iter().map(|(due, kind)| TimerRow { due: *due, run, kind: *kind }).collect();
        self.later(move |this| {
            this.submit(Write::Forget { run, tasks, timers }, move |this, result| {
                if result.is_ok() {
                    this.set_timers(&[], &rows);
                }
            });
        });
    }
}
