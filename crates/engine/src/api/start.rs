//! Starting runs. A start and its first turn commit together; if that turn cannot be played, the start commits alone.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use dacapo_core::{
    Activation, ActivationError, Completion, Headers, IdReuse, Job, Lineage, Name, Payload, Retry, Run, SEMANTICS,
    Start, Terms, Timestamp, Turn, TurnRecord,
};
use dacapo_store::{
    Conflict, Doing, NewRun, Refused, RunNo, RunRow, StartedRun, StoreError, Strikes, TimerRow, TurnOf, TurnWritten,
    Write, Written,
};
use dacapo_worker::Deadlock;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::oneshot;

use crate::inner::Inner;
use crate::run::cached_run::{About, Body, Live, Stage};
use crate::run::new_run::{new_run, seed_of};
use crate::run::open_operations::{Book, kept};
use crate::turn::commit::Follow;
use crate::turn::plan::{Plan, Scene};
use crate::turn::player::Play;
use crate::{Engine, EngineError};

/// A run to be started.
#[derive(Clone, Debug, Default)]
pub struct NewStart {
    /// The workflow's type.
    pub workflow: Name,
    /// The caller's name for it.
    pub workflow_id: Name,
    /// The arguments.
    pub input: Vec<Payload>,
    /// The queue; the first that the engine serves by default.
    pub queue: Option<Name>,
    /// Whether its workflow id may have been used before.
    pub reuse: IdReuse,
    /// What to do when its workflow id is in use now.
    pub conflict: Conflict,
    /// The caller's key for this request: the same key again is the same start.
    pub request: Option<Name>,
    /// From the start of the first run to the end of the last.
    pub execution_timeout: Option<Duration>,
    /// From the start of one run to its end.
    pub run_timeout: Option<Duration>,
    /// How long it waits before it begins.
    pub delay: Option<Duration>,
    /// When the workflow is run again after a failure; never by default.
    pub retry: Option<Retry>,
    /// Notes for people.
    pub memo: BTreeMap<Name, Payload>,
    /// What it can be found by.
    pub search_attributes: BTreeMap<Name, Payload>,
    /// What travels beside the arguments.
    pub headers: Headers,
    /// What the run keeps for life; what the engine was set up with for this workflow by default.
    pub pins: Option<dacapo_core::Pins>,
}

/// A run that was started, or had been.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedAs {
    /// Its workflow id.
    pub workflow_id: Name,
    /// Its run id.
    pub run_id: Name,
    /// Its number in the store.
    pub run: RunNo,
    /// Whether this call started it.
    pub fresh: bool,
}

type Answer = oneshot::Sender<Result<StartedAs, EngineError>>;

impl Engine {
    /// Starts a run. Its start is durable when this answers.
    pub fn start(&self, new: NewStart) -> impl Future<Output = Result<StartedAs, EngineError>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        match self.inner.prepare(new) {
            Ok((new, start)) => {
                let this = self.inner.clone();
                let queue = start.queue.clone();
                self.inner.host.play(Some(&queue), Box::new(move || this.start(new, start, answer)));
            }
            Err(error) => drop(answer.send(Err(error))),
        }
        async move { answered.await.unwrap_or(Err(EngineError::ShutDown)) }
    }
}

impl Inner {
    fn prepare(&self, new: NewStart) -> Result<(NewRun, Start), EngineError> {
        self.check()?;
        if self.is_draining() {
            return Err(EngineError::ShutDown);
        }
        check_name("a workflow type", &new.workflow)?;
        check_name("a workflow id", &new.workflow_id)?;
        if let Some(request) = &new.request {
            check_name("a request id", request)?;
        }
        let queue = match new.queue {
            Some(queue) => queue,
            None => self.first_worker().queue().clone(),
        };
        check_name("a queue", &queue)?;
        if self.serves(&queue) && self.options.registry.find_workflow(&new.workflow).is_none() {
            return Err(EngineError::UnknownWorkflow { workflow: new.workflow, known: self.options.known_workflows() });
        }
        for (what, timeout) in [("execution", new.execution_timeout), ("run", new.run_timeout)] {
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                return Err(EngineError::BadInput(format!(
                    "the {what} timeout is zero: it would end the run before it begins"
                )));
            }
        }
        if let Some(problem) = crate::turn::validate::retry(new.retry.as_ref()) {
            return Err(EngineError::BadInput(problem));
        }
        for (what, names) in
            [("an entry of the memo", new.memo.keys()), ("a search attribute", new.search_attributes.keys())]
        {
            names.into_iter().try_for_each(|name| check_name(what, name))?;
        }
        let named = new.input.iter().map(|payload| ("the input", payload));
        let named = named.chain(new.memo.values().map(|payload| ("a memo", payload)));
        let named = named.chain(new.search_attributes.values().map(|payload| ("a search attribute", payload)));
        for (what, payload) in named {
            self.check_size(what, payload)?;
        }
        let now = self.host.now();
        let started = new.delay.map_or(now, |delay| now.after(delay));
        let terms = Terms {
            execution_timeout: new.execution_timeout,
            run_timeout: new.run_timeout,
            expires: new.execution_timeout.map(|timeout| started.after(timeout)),
            retry: new.retry,
            ..Terms::default()
        };
        let run_id = self.host.run_id();
        let start = Start {
            seed: seed_of(&run_id),
            workflow: new.workflow,
            workflow_id: new.workflow_id,
            lineage: Some(Box::new(Lineage { first_run_id: run_id.clone(), ..Lineage::default() })),
            run_id,
            input: new.input,
            queue,
            started,
            attempt: 1,
            headers: new.headers,
            memo: new.memo,
            search_attributes: new.search_attributes,
            identity: Name::default(),
            terms: (terms != Terms::default()).then(|| Box::new(terms)),
        };
        let pins = new.pins.unwrap_or_else(|| self.pins_of(&start.workflow));
        if pins.semantics == 0 || pins.semantics > SEMANTICS {
            let found = pins.semantics;
            return Err(EngineError::BadInput(
                ActivationError::UnknownSemantics { found, known: SEMANTICS }.to_string(),
            ));
        }
        let mut run = new_run(start.clone(), &pins, now);
        (run.reuse, run.conflict, run.request) = (new.reuse, new.conflict, new.request);
        Ok((run, start))
    }

    pub(crate) fn check_size(&self, what: &str, payload: &Payload) -> Result<(), EngineError> {
        let (size, limit) = (payload.data.len(), self.options.payload_limit);
        match size > limit {
            true => Err(EngineError::PayloadTooLarge { what: what.to_owned(), size, limit }),
            false => Ok(()),
        }
    }

    fn start(self: &Arc<Self>, new: NewRun, start: Start, answer: Answer) {
        if let Err(error) = self.check() {
            return drop(answer.send(Err(error)));
        }
        let now = self.host.now();
        if start.started > now || !self.serves(&start.queue) {
            return self.start_alone(new, Alone::Later, answer);
        }
        let is_suspect = self.trials().suspects(start_no(&new.workflow_id));
        if is_suspect {
            return self.start_alone(new, Alone::Struck, answer);
        }
        // Whoever comes first answers: the turn, or the watch that gives up on it.
        let answer = Arc::new(Mutex::new(Some(answer)));
        let turn = self.first_turn(&new, &start, now, &answer);
        let Some(answer) = answer.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        match turn {
            Ok((body, plan)) => self.start_with_turn(new, body, plan, answer),
            // It is started all the same: it is open, and says why it does not go on.
            Err(reason) => self.start_alone(new, Alone::Stuck(reason, Weak::new()), answer),
        }
    }

    fn first_turn(
        self: &Arc<Self>,
        new: &NewRun,
        start: &Start,
        now: Timestamp,
        answer: &Arc<Mutex<Option<Answer>>>,
    ) -> Result<(Box<Body>, Plan), String> {
        let workflow = self.options.registry.find_workflow(&start.workflow).ok_or("the workflow is not registered")?;
        let about = Arc::new(About {
            run_id: new.run_id.clone(),
            workflow_id: new.workflow_id.clone(),
            workflow: new.workflow.clone(),
            queue: new.queue.clone(),
            first_run_id: new.run_id.clone(),
            parent: None,
            pins: minicbor::decode(&new.pins).map_err(|error| error.to_string())?,
            epoch: Default::default(),
        });
        let mut run =
            Run::new(workflow.clone(), self.options.for_run(&about.pins)).map_err(|error| error.to_string())?;
        let jobs = vec![Job::Start(Box::new(start.clone()))];
        let turn = Turn { now, jobs, history: Default::default(), replaying: false, recorded: None };
        let (stuck, answer) = (new.clone(), answer.clone());
        let give_up = move |this: &Arc<Self>, deadlock: Deadlock, play| {
            let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(answer) = answer {
                this.later(move |this| this.start_alone(stuck, Alone::Stuck(deadlock.reason, play), answer));
            }
        };
        let watching = self.watch_over(&about, &run, give_up);
        let noted = self.note(Doing::Start(start_no(&new.workflow_id)));
        let played = self.play_one(&about, &mut run, Activation::Turn(turn.clone()));
        drop((noted, watching));
        let done = match played {
            Completion::Turn(done) => done,
            Completion::Failed(error) => return Err(error.to_string()),
            other => unreachable!("a turn was answered with {other:?}"),
        };
        crate::turn::choices::trace(&about, &done);
        let record = TurnRecord::of(&turn, &done, &self.options.build).ok_or("the first turn left no trace")?;
        if let Some(reason) = crate::turn::validate::objection(&record, self.options.payload_limit) {
            return Err(reason);
        }
        let bytes = record.to_bytes();
        let length = bytes.len();
        // Timers and terms are those of the start, so the book must know it before the turn is translated.
        let book = Book { start: kept(start), ..Book::default() };
        let scene = Scene {
            run: RunNo::default(),
            about: &about,
            book: &book,
            arrivals: &[],
            task_of: &|_| None,
            run_id: &|| self.host.run_id(),
            pins: &|workflow| self.pins_of(workflow),
        };
        let mut plan = scene.plan(&record, bytes, &done)?;
        let mut book = Book::default();
        book.enter(&record, length);
        plan.mark_wakeful(None, book.wakeful_since);
        Ok((Box::new(Body { about, run, book, held: Vec::new(), player: 0 }), plan))
    }

    fn start_with_turn(self: &Arc<Self>, new: NewRun, body: Box<Body>, plan: Plan, answer: Answer) {
        let Plan { mut write, after } = plan;
        let (timers, ended) = (new.timers.clone(), write.ended_timers.clone());
        let turn_timers = write.timers.clone();
        let (workflow_id, run_id) = (new.workflow_id.clone(), new.run_id.clone());
        let fallback = new.clone();
        write.run = TurnOf::New(Box::new(new));
        self.submit(Write::Turn(Box::new(write)), move |this, result| match result {
            Ok(Written::Turn(written)) => {
                let run = written.run;
                let row = |(due, kind): &(_, _)| TimerRow { due: *due, run, kind: *kind };
                let follow = Follow {
                    after,
                    strikes: 0,
                    timers: timers.iter().chain(&turn_timers).map(row).collect(),
                    ended_timers: ended.iter().map(row).collect(),
                };
                this.begun(run, body, follow, *written);
                let _ = answer.send(Ok(StartedAs { workflow_id, run_id, run, fresh: true }));
            }
            Ok(other) => unreachable!("a turn was answered with {other:?}"),
            // The same start was made before, or is to be: it is the store that says which run stands for it.
            Err(StoreError::Refused(Refused::InUse { conflict: Conflict::UseExisting, .. })) => {
                drop(body);
                this.later(move |this| this.start_alone(fallback, Alone::Later, answer));
            }
            Err(error) => {
                drop(body);
                let _ = answer.send(Err(error.into()));
            }
        });
    }

    /// The run has its number, and others may have found it in the store already.
    fn begun(self: &Arc<Self>, run: RunNo, body: Box<Body>, follow: Follow, written: TurnWritten) {
        let (live, is_ours, is_new) = self.claim(run);
        live.is_played_by(self.worker(&body.about.queue));
        // They may also have ended it, or have played it on and put it away again: then this copy is of the past.
        let open = follow.after.closed.is_none();
        let is_same = |row: RunRow| row.turns == 1 && row.status.is_open() == open;
        let is_fresh = || is_new || self.store.run(run).is_ok_and(|row| row.is_some_and(is_same));
        match is_ours && is_fresh() {
            true => self.committed(live, body, follow, written),
            false => {
                self.committed_beside(&live, body, follow, &written);
                if is_ours {
                    self.rest(&live, None);
                }
            }
        }
    }

    /// The entry of a run, whether nobody else has it, and whether nobody can have had it.
    fn claim(self: &Arc<Self>, run: RunNo) -> (Arc<Live>, bool, bool) {
        loop {
            let mut runs = self.runs();
            let (is_new, live) = (runs.is_new(run), runs.get_or_create(run));
            drop(runs);
            let mut state = live.lock();
            // Somebody may have made room between the two.
            if state.gone {
                continue;
            }
            let is_ours = state.stage == Stage::Idle && state.body.is_none();
            if is_ours {
                state.stage = Stage::Busy;
            }
            drop(state);
            return (live, is_ours, is_new);
        }
    }

    /// Starts a run without its first turn.
    fn start_alone(self: &Arc<Self>, new: NewRun, why: Alone, answer: Answer) {
        let (workflow_id, start) = (new.workflow_id.clone(), start_no(&new.workflow_id));
        self.submit(Write::Start(Box::new(new)), move |this, result| match result {
            Ok(Written::Started { run: started, effects }) => {
                this.effects(&effects);
                let StartedRun { run, run_id, fresh, .. } = started.clone();
                let _ = answer.send(Ok(StartedAs { workflow_id, run_id, run, fresh }));
                match why {
                    _ if !fresh => {}
                    Alone::Later => this.started(&started),
                    Alone::Struck => {
                        this.trials().has_started(start);
                        let strike = Write::Strike(vec![Strikes::Run { run, strikes: 1, stuck: None }]);
                        this.write_later(move |_| Some(strike), move |this, _| this.started(&started));
                    }
                    Alone::Stuck(reason, play) => this.later(move |this| {
                        let (live, is_ours, _) = this.claim(run);
                        let row = |(due, kind): &(_, _)| TimerRow { due: *due, run, kind: *kind };
                        this.set_timers(&started.timers.iter().map(row).collect::<Vec<_>>(), &[]);
                        if is_ours {
                            live.lock().lost_player = play;
                            this.park(live, reason);
                        }
                    }),
                }
            }
            Ok(other) => unreachable!("a start was answered with {other:?}"),
            Err(error) => drop(answer.send(Err(error.into()))),
        });
    }
}

/// Why a run is started without its first turn.
enum Alone {
    /// That comes later.
    Later,
    /// It may kill the process: it was under way when the last one died, before anybody knew of the run. Now the run is known
    /// first, with that held against it, and then played as any other; or it is there already.
    Struck,
    /// It could not be played: why, and who may still be at it.
    Stuck(String, Weak<Mutex<Play>>),
}

/// The number by which it is noted that the first turn of a run is played.
pub(crate) fn start_no(workflow_id: &str) -> u64 {
    seed_of(workflow_id)
}

/// Names are for people and for indexes: neither empty nor endless, and printable.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), EngineError> {
    const LONGEST: usize = 1_000;
    let problem = match name {
        "" => Some("is empty".to_owned()),
        name if name.len() > LONGEST => Some(format!("has {} bytes; {LONGEST} are allowed", name.len())),
        name if name.chars().any(char::is_control) => Some(format!("holds control characters: {name:?}")),
        _ => None,
    };
    problem.map_or(Ok(()), |problem| Err(EngineError::BadInput(format!("{what} {problem}"))))
}
