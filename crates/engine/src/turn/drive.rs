//! Playing a run: what came for it becomes one turn, and the turn becomes one write.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{
    Activation, Answer, Command, CommandKind, Completion, Job, Name, Operation, Query, Seq, Turn, TurnDone, TurnRecord,
};
use dacapo_store::{StoreError, Write};

use crate::EngineError;
use crate::crash_guard::quarantine::{is_quarantined, words_on_run};
use crate::inner::Inner;
use crate::report::log as loud;
use crate::run::cached_run::{Arrival, Ask, Body, Live, Stage};
use crate::run::open_operations::{Book, Open};
use crate::timer::wheel::Due;
use crate::turn::load::{Loaded, Replayed};
use crate::turn::plan::{Plan, Scene};
use crate::turn::update_outcome::{late_tasks, settle};
use crate::turn::validate::objection;

/// How long a turn of nothing but local work may wait for its result before it is committed.
const HELD: Duration = Duration::from_millis(100);

impl Inner {
    /// Plays one turn of a run, on a thread without an async runtime. There is one player of a run at a time.
    pub(crate) fn play(self: &Arc<Self>, live: Arc<Live>) {
        if self.trouble().is_some() {
            return;
        }
        let mut state = live.lock();
        if state.gone {
            return;
        }
        state.stage = Stage::Busy;
        let holds = state.body.as_ref().is_some_and(|body| !body.held.is_empty());
        if !holds && let Some(reset) = state.resets.pop_front() {
            let body = state.body.take();
            drop(state);
            drop(body);
            return self.reset(live, reset);
        }
        if state.lost_player.strong_count() > 0 {
            drop(state);
            return self.wait_for_lost_player(&live);
        }
        if state.parked_until > self.host.now() {
            drop(state);
            return self.answer_parked(&live);
        }
        let player = state.player;
        let (body, redo, flush) =
            (state.body.take(), std::mem::take(&mut state.redo), std::mem::take(&mut state.flush));
        drop(state);
        match body {
            Some(body) if !body.held.is_empty() && (flush || !redo.is_empty() || live.lock().is_asked()) => {
                // What was held back goes first: nobody is answered from a turn that is not committed.
                live.lock().redo.extend(redo);
                self.commit(live, body);
            }
            Some(mut body) if redo.iter().all(|(seq, _)| !is_closure(&body.book, *seq)) => {
                self.worker(&body.about.queue).meters().cache_hits.increment(1);
                self.redo(&live, &mut body, redo);
                self.play_body(live, body);
            }
            // The closure is spent: only a run that was played again from the beginning has it once more.
            other => {
                drop(other);
                // Until it is loaded: it may have to wait.
                live.lock().redo.extend(redo);
                self.play_loaded(live, player);
            }
        }
    }

    fn play_loaded(self: &Arc<Self>, live: Arc<Live>, player: u64) {
        match self.load(&live, player) {
            Ok(Loaded::Ready(mut body)) => {
                let redo = std::mem::take(&mut live.lock().redo);
                self.redo(&live, &mut body, redo);
                self.resume(&live, &mut body);
                self.play_body(live, body);
            }
            Ok(Loaded::Closed(row)) => self.answer_closed(&live, player, &row),
            Ok(Loaded::Lost) => {}
            Ok(away @ (Loaded::NotYet(_) | Loaded::Elsewhere)) => {
                if let Loaded::NotYet(begins) = away {
                    // A delayed start has a timer in the store; a clock that was set back has none.
                    self.own_timer(begins, Due::Begin(live.no));
                }
                // Mail and timers stay where they are, in the store; results go there.
                let (arrivals, asks) = live.lock().turn_away();
                for ask in asks {
                    ask.refuse(EngineError::Stuck("it has not begun, or others serve its queue".to_owned()));
                }
                self.keep_results(&live, arrivals);
                self.retire(&live);
            }
            Ok(Loaded::Missing) => {
                // Not asked again: there is nobody to ask.
                let asks = std::mem::take(&mut live.lock().asks);
                asks.into_iter().for_each(|(_, ask)| ask.refuse(EngineError::Stuck("it was deleted".to_owned())));
                self.forget(live.no);
            }
            Ok(Loaded::Stuck(reason)) => self.park(live, reason),
            Ok(Loaded::Quarantined(row)) => self.hold(&live, &row),
            Ok(Loaded::Waits) => self.drained(),
            Err(error) => self.retry_later(live, Vec::new(), &error),
        }
    }

    fn play_body(self: &Arc<Self>, live: Arc<Live>, mut body: Box<Body>) {
        self.answer(&live, &mut body);
        let mut state = live.lock();
        if state.player != body.player {
            return;
        }
        let arrivals = state.take(self.options.completions_per_turn);
        let stuck = state.strikes > 0;
        drop(state);
        let (mut arrivals, stale): (Vec<Arrival>, Vec<Arrival>) =
            arrivals.into_iter().partition(|arrival| is_wanted(&body.book, arrival));
        arrivals.sort_by_key(Arrival::rank);
        if arrivals.is_empty() {
            return match (stale.is_empty(), stuck) {
                (true, false) => self.rest(&live, Some(body)),
                (true, true) => self.unpark(live, body),
                (false, _) => self.settle_mail(live, body, stale, Vec::new()),
            };
        }
        let now = self.host.now();
        let jobs: Vec<Job> = arrivals.iter().map(Arrival::job).collect();
        let turn = Turn { now, jobs, history: body.book.history, replaying: false, recorded: None };
        let mut all = arrivals;
        all.extend(stale);
        live.lock().uncommitted.extend(all.iter().cloned());
        let (player, about) = (body.player, body.about.clone());
        let Some(played) = self.activate(&live, player, &about, &mut body.run, Activation::Turn(turn.clone())) else {
            return;
        };
        match played {
            Completion::Turn(done) => self.played(live, body, all, &turn, done),
            Completion::Failed(error) => self.fail(live, body, error.to_string()),
            other => unreachable!("a turn was answered with {other:?}"),
        }
    }

    fn played(self: &Arc<Self>, live: Arc<Live>, mut body: Box<Body>, all: Vec<Arrival>, turn: &Turn, done: TurnDone) {
        crate::turn::choices::trace(&body.about, &done);
        for warning in &done.warnings {
            loud::about_run(&body.about.workflow_id, &body.about.run_id, warning);
        }
        let Some(record) = TurnRecord::of(turn, &done, &self.options.build) else {
            let mut state = live.lock();
            let before = state.uncommitted.len() - all.len();
            state.uncommitted.truncate(before);
            drop(state);
            return self.settle_mail(live, body, all, done.rejected);
        };
        if let Some(reason) = objection(&record, self.options.payload_limit) {
            return self.fail(live, body, reason);
        }
        let bytes = record.to_bytes();
        let length = bytes.len();
        match self.scene(&live, &body, &all).plan(&record, bytes, &done) {
            Err(reason) => self.fail(live, body, reason),
            Ok(mut plan) => {
                let before = body.book.wakeful_since;
                body.book.enter(&record, length);
                plan.mark_wakeful(before, body.book.wakeful_since);
                self.conclude(live, body, plan, &record);
            }
        }
    }

    fn scene<'a>(&'a self, live: &'a Live, body: &'a Body, arrivals: &'a [Arrival]) -> SceneOf<'a> {
        SceneOf { inner: self, live, body, arrivals }
    }

    /// Commits a turn, or holds it back if it asks for nothing but local work.
    fn conclude(self: &Arc<Self>, live: Arc<Live>, mut body: Box<Body>, plan: Plan, record: &TurnRecord) {
        // What a process that shuts down has heard is committed, and not kept for work that it does not begin any more.
        let held = !self.is_draining()
            && record.number > 0
            && plan.after.rejected.is_empty()
            && !record.commands.is_empty()
            && record.commands.iter().all(is_local);
        let first = body.held.is_empty();
        body.held.push(plan);
        if !held {
            return self.commit(live, body);
        }
        if first {
            self.own_timer(self.host.now().after(HELD), Due::Flush(live.no));
        }
        self.start_locals(&live, &mut body);
        let cancelled = body.held.last_mut().map(|plan| std::mem::take(&mut plan.after.cancelled_locals));
        self.cancel_locals(live.no, cancelled.unwrap_or_default());
        self.rest(&live, Some(body));
    }

    /// The turn cannot be committed: the run stays as it was recorded, and says why.
    fn fail(self: &Arc<Self>, live: Arc<Live>, body: Box<Body>, reason: String) {
        drop(body);
        live.lock().put_back_all();
        self.park(live, reason);
    }

    /// Mail that leaves no turn: refused updates, and results that nobody waits for.
    fn settle_mail(
        self: &Arc<Self>,
        live: Arc<Live>,
        body: Box<Body>,
        arrivals: Vec<Arrival>,
        rejected: Vec<dacapo_core::Rejected>,
    ) {
        let write = Write::Settle {
            run: live.no,
            epoch: body.about.epoch,
            mail: settle(&arrivals, &rejected),
            tasks: late_tasks(&arrivals),
        };
        self.submit(write, move |this, result| match result {
            Ok(_) => {
                for rejected in rejected {
                    let answer = Err(EngineError::UpdateRejected(Box::new(rejected.failure)));
                    this.waits().answered(live.no, &rejected.update, &answer);
                }
                this.rest(&live, Some(body));
            }
            Err(StoreError::Refused(_)) => {
                drop(body);
                this.closed_elsewhere(live.no);
            }
            Err(error) => {
                let arrivals = arrivals;
                drop(body);
                this.retry_later(live, arrivals, &error);
            }
        });
    }

    pub(crate) fn answer(self: &Arc<Self>, live: &Arc<Live>, body: &mut Body) {
        let asks = live.lock().take_asks();
        for ask in asks {
            self.answer_one(live, ask, body);
        }
    }

    /// A closed run answers, and leaves memory again.
    pub(crate) fn answer_closed(self: &Arc<Self>, live: &Arc<Live>, player: u64, row: &dacapo_store::RunRow) {
        let is_asked = !live.lock().asks.is_empty();
        if is_asked && !is_quarantined(row) && !self.admit(live, row.strikes) {
            return self.drained();
        }
        let mut state = live.lock();
        let asks = std::mem::take(&mut state.asks);
        let late = std::mem::take(&mut state.inbox);
        drop(state);
        self.forget_late(live.no, late.into_iter().collect());
        if !asks.is_empty() {
            let replayed = match is_quarantined(row) {
                true => Ok(Replayed::Stuck(words_on_run(row))),
                false => self.replay(live, player, row),
            };
            let body = match replayed {
                Ok(Replayed::Ready(body)) => Ok(body),
                Ok(Replayed::Stuck(reason)) => Err(EngineError::Stuck(reason)),
                Ok(Replayed::Lost) => Err(EngineError::Stuck(TOO_LONG.to_owned())),
                Err(error) => Err(error.into()),
            };
            match body {
                Ok(mut body) => asks.into_iter().for_each(|(_, ask)| self.answer_one(live, ask, &mut body)),
                Err(error) => asks.into_iter().for_each(|(_, ask)| ask.refuse(error.clone())),
            }
        }
        self.retire(live);
    }
}

/// What a plan needs to know of the engine.
pub(crate) struct SceneOf<'a> {
    inner: &'a Inner,
    live: &'a Live,
    body: &'a Body,
    arrivals: &'a [Arrival],
}

impl SceneOf<'_> {
    fn plan(&self, record: &TurnRecord, bytes: Vec<u8>, done: &TurnDone) -> Result<Plan, String> {
        let scene = Scene {
            run: self.live.no,
            about: &self.body.about,
            book: &self.body.book,
            arrivals: self.arrivals,
            task_of: &|seq| self.inner.desk().get(self.live.no, seq).map(|task| task.no),
            run_id: &|| self.inner.host.run_id(),
            pins: &|workflow| self.inner.pins_of(workflow),
        };
        scene.plan(record, bytes, done)
    }
}

const TOO_LONG: &str = "the code took too long to answer";

impl Inner {
    fn answer_one(self: &Arc<Self>, live: &Arc<Live>, ask: Ask, body: &mut Body) {
        match ask {
            Ask::Query(query, answer) => drop(answer.send(self.query_run(live, body, query))),
            Ask::Inspect(answer) => drop(answer.send(Ok(body.run.inspect()))),
            Ask::Promise(promise, answer) => drop(answer.send(find_promise(body, promise))),
        }
    }

    fn query_run(
        self: &Arc<Self>,
        live: &Arc<Live>,
        body: &mut Body,
        query: Query,
    ) -> Result<dacapo_core::Payload, EngineError> {
        let about = body.about.clone();
        let answered = self.activate(live, body.player, &about, &mut body.run, Activation::Query(vec![query]));
        self.has_answered(live.no);
        match answered {
            Some(Completion::Query(mut answers)) => match answers.pop() {
                Some(Answer { result: Ok(payload), .. }) => Ok(payload),
                Some(Answer { result: Err(failure), .. }) => Err(EngineError::QueryFailed(Box::new(failure))),
                None => unreachable!("one query has one answer"),
            },
            Some(Completion::Failed(error)) => Err(EngineError::Stuck(error.to_string())),
            Some(other) => unreachable!("a query was answered with {other:?}"),
            None => Err(EngineError::Stuck(TOO_LONG.to_owned())),
        }
    }
}

fn find_promise(body: &Body, wanted: Name) -> Result<Seq, EngineError> {
    let promises = body.book.open.values().filter_map(|open| match open {
        Open::Promise(promise) => Some(promise),
        _ => None,
    });
    let promises: Vec<_> = promises.collect();
    let found = promises.iter().find(|promise| promise.name == wanted || promise.id.to_string() == wanted.as_str());
    found.map(|promise| promise.seq).ok_or_else(|| {
        let open: Vec<&str> = promises.iter().map(|promise| promise.name.as_str()).collect();
        EngineError::NoSuchPromise {
            workflow_id: body.about.workflow_id.clone(),
            promise: wanted,
            open: if open.is_empty() { "none".to_owned() } else { open.join(", ") },
        }
    })
}

/// Whether a run still waits for what came. What it does not wait for any more is no error: it came too late.
fn is_wanted(book: &Book, arrival: &Arrival) -> bool {
    match arrival.job() {
        Job::Resolve { seq, resolution } => book.expects(seq, &resolution),
        Job::Start(_) => book.next_turn == 0,
        _ => true,
    }
}

fn is_local(command: &Command) -> bool {
    match &command.kind {
        CommandKind::LocalActivity(_) | CommandKind::Run(_) => true,
        CommandKind::Cancel(cancel) => matches!(cancel.operation, Operation::LocalActivity | Operation::Run),
        _ => false,
    }
}

fn is_closure(book: &Book, seq: Seq) -> bool {
    matches!(book.open.get(&seq), Some(Open::Run { .. }))
}
