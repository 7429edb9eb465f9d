//! The engine behind its handles: what is in memory, and how things reach the runs they are for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dacapo_core::{Name, Outcome, Pins, Timestamp};
use dacapo_store::{Posted, RunNo, Status, Store, StoreError, TaskNo, Write, Written};
use dacapo_worker::{Level, Worker, describe_meters, meter};
use metrics::Histogram;

use crate::activity::local::Locals;
use crate::activity::task_queue::Desk;
use crate::crash_guard::probation::Trials;
use crate::host::Host;
use crate::lifecycle::retention::Sweeping;
use crate::lifecycle::shutdown::Drain;
use crate::read::records::LastRecord;
use crate::report::deduplication::Said;
use crate::report::log as loud;
use crate::run::cache::Runs;
use crate::run::cached_run::{Arrival, Ask, Live, LiveState, Stage};
use crate::run::waiters::Waits;
use crate::timer::wheel::{AlarmNo, Due, Timers};
use crate::{EngineError, Options};

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) options: Options,
    /// One for each queue that is served here.
    workers: BTreeMap<Name, Arc<Worker>>,
    runs: Mutex<Runs>,
    desk: Mutex<Desk>,
    /// Where the input of an activity was last read again.
    pub(crate) origins: Mutex<LastRecord>,
    locals: Mutex<Locals>,
    timers: Mutex<Timers>,
    waits: Mutex<Waits>,
    trials: Mutex<Trials>,
    /// Set once the engine can do nothing more.
    halted: Mutex<Option<EngineError>>,
    drain: Mutex<Option<Drain>>,
    commit_seconds: Histogram,
    stopped: Mutex<Level>,
    /// What was said of parked runs.
    pub(crate) said: Mutex<Said>,
    /// When the clock will look at the zombies of each queue.
    pub(crate) alarms: Mutex<BTreeMap<Name, AlarmNo>>,
    pub(crate) sweeping: Sweeping,
    /// Notes that are on their way to the store.
    pub(crate) unwritten: AtomicUsize,
    /// Why the engine shuts down by itself, once it does.
    pub(crate) doomed: tokio::sync::watch::Sender<Option<Arc<str>>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn new(store: Arc<dyn Store>, host: Arc<dyn Host>, options: Options) -> Self {
        describe_meters();
        let worker =
            |(queue, values): (&Name, &_)| (queue.clone(), Arc::new(Worker::new(queue.clone(), Clone::clone(values))));
        Self {
            store,
            host,
            workers: options.queues.iter().map(worker).collect(),
            runs: Mutex::new(Runs::new(options.cache)),
            desk: Mutex::new(Desk::new(
                options.queues.iter().map(|(queue, values)| (queue.clone(), values.max_concurrent_activities)),
            )),
            origins: Mutex::default(),
            locals: Mutex::default(),
            timers: Mutex::default(),
            waits: Mutex::default(),
            trials: Mutex::default(),
            halted: Mutex::default(),
            drain: Mutex::default(),
            commit_seconds: meter::COMMIT_SECONDS.histogram(&[]),
            stopped: Mutex::new(meter::STOPPED.level(&[])),
            said: Mutex::default(),
            alarms: Mutex::default(),
            sweeping: Sweeping::default(),
            unwritten: AtomicUsize::new(0),
            doomed: tokio::sync::watch::Sender::default(),
            options,
        }
    }

    pub(crate) fn runs(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }

    pub(crate) fn locals(&self) -> MutexGuard<'_, Locals> {
        lock(&self.locals)
    }

    pub(crate) fn timers(&self) -> MutexGuard<'_, Timers> {
        lock(&self.timers)
    }

    pub(crate) fn waits(&self) -> MutexGuard<'_, Waits> {
        lock(&self.waits)
    }

    pub(crate) fn trials(&self) -> MutexGuard<'_, Trials> {
        lock(&self.trials)
    }

    pub(crate) fn drain(&self) -> MutexGuard<'_, Option<Drain>> {
        lock(&self.drain)
    }

    pub(crate) fn serves(&self, queue: &str) -> bool {
        self.workers.contains_key(queue)
    }

    pub(crate) fn workers(&self) -> impl Iterator<Item = &Arc<Worker>> {
        self.workers.values()
    }

    /// The worker of a queue; for work of a queue that others serve, the first.
    pub(crate) fn worker(&self, queue: &str) -> &Arc<Worker> {
        self.workers.get(queue).unwrap_or_else(|| self.first_worker())
    }

    pub(crate) fn first_worker(&self) -> &Arc<Worker> {
        self.workers.values().next().expect("an engine serves a queue at least")
    }

    /// What new runs of this workflow keep for life.
    pub(crate) fn pins_of(&self, workflow: &str) -> Pins {
        let pins = self.options.pins.iter().find(|(name, _)| *name == workflow);
        pins.map(|(_, pins)| pins.clone()).unwrap_or_default()
    }

    /// Why the engine can do nothing more, if it cannot.
    pub(crate) fn trouble(&self) -> Option<EngineError> {
        lock(&self.halted).clone()
    }

    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.trouble().map_or(Ok(()), Err)
    }

    /// Nothing more is written or played. What the store holds is the truth, and the next engine goes on from there.
    pub(crate) fn halt(&self, error: EngineError) {
        let mut halted = lock(&self.halted);
        if halted.is_some() {
            return;
        }
        if error != EngineError::ShutDown {
            lock(&self.stopped).set(1);
            loud::about_engine(&format_args!(
                "the engine stops; what was committed is not lost. Start the process again: {error}"
            ));
        }
        *halted = Some(error);
        drop(halted);
        self.break_off_drain();
        self.waits().abandon();
        // Collected first: giving up drops user code, which must find no lock held.
        let mut grips: Vec<_> = self.desk().grips().cloned().collect();
        grips.extend(self.locals().take_grips());
        for grip in grips {
            grip.give_up("the engine has stopped");
        }
        let lives = self.runs().all();
        for live in lives {
            let mut state = live.lock();
            let asks = std::mem::take(&mut state.asks);
            let body = state.body.take();
            drop(state);
            drop(body);
            for (_, ask) in asks {
                ask.refuse(self.trouble().unwrap_or(EngineError::ShutDown));
            }
        }
    }

    /// Stops, because somebody asked for it, and lets go of the store. Gives what is wrong with it, if anything is.
    pub(crate) fn end(&self) -> Option<EngineError> {
        self.halt(EngineError::ShutDown);
        let error = self.store.close().err()?;
        loud::about_engine(&format_args!("the engine has stopped, and something is wrong with its store: {error}"));
        Some(error.into())
    }

    /// Submits a write from a thread that may block. `done` must not block.
    pub(crate) fn submit(
        self: &Arc<Self>,
        write: Write,
        done: impl FnOnce(&Arc<Self>, Result<Written, StoreError>) + Send + 'static,
    ) {
        let (this, began) = (self.clone(), Instant::now());
        let tell = move |result: Result<Written, StoreError>| {
            this.commit_seconds.record(began.elapsed());
            if let Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) = &result {
                this.halt(error.clone().into());
            }
            done(&this, result);
        };
        match self.trouble() {
            Some(_) => tell(Err(StoreError::Unavailable("the engine has stopped".to_owned()))),
            None => self.store.submit(write, Box::new(tell)),
        }
    }

    /// Writes something from any thread, as it stands by then. A shutdown waits for it.
    pub(crate) fn write_later(
        self: &Arc<Self>,
        write: impl FnOnce(&Arc<Self>) -> Option<Write> + Send + 'static,
        done: impl FnOnce(&Arc<Self>, Result<Written, StoreError>) + Send + 'static,
    ) {
        self.unwritten.fetch_add(1, Ordering::AcqRel);
        let written = |this: &Arc<Self>| {
            this.unwritten.fetch_sub(1, Ordering::AcqRel);
            this.drained();
        };
        self.later(move |this| match write(this) {
            Some(write) => this.submit(write, move |this, result| {
                done(this, result);
                written(this);
            }),
            None => written(this),
        });
    }

    /// Has this done on a thread that may block.
    pub(crate) fn later(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let this = self.clone();
        self.host.play(None, Box::new(move || work(&this)));
    }

    /// Does something with a run's entry, which is made if there is none, and wakes the run if there is work for it.
    pub(crate) fn with_live<R>(self: &Arc<Self>, run: RunNo, change: impl FnOnce(&mut LiveState) -> R) -> R {
        loop {
            let live = self.runs().get_or_create(run);
            let mut state = live.lock();
            if state.gone {
                continue;
            }
            let result = change(&mut state);
            self.wake(&live, &mut state);
            return result;
        }
    }

    /// Brings something to a run.
    pub(crate) fn deliver(self: &Arc<Self>, run: RunNo, arrival: Arrival) {
        // A run that is parked takes nothing soon, and memory is no place for a result to wait in.
        let parked = match arrival {
            Arrival::Result { .. } => self.runs().get(run).filter(|live| live.lock().stage == Stage::Parked),
            _ => None,
        };
        if let Some(live) = parked {
            return self.later(move |this| this.keep_results(&live, vec![arrival]));
        }
        self.with_live(run, |state| {
            // Loading the run may have been faster.
            if !arrival.mail().is_some_and(|no| state.read.remove(&no)) {
                state.push(arrival);
            }
        });
    }

    pub(crate) fn deliver_posted(self: &Arc<Self>, posted: &Posted) {
        if posted.fresh {
            match minicbor::decode(&posted.job) {
                Ok(job) => self.deliver(posted.run, Arrival::Mail { no: posted.no, job }),
                Err(error) => tracing::error!(run = %posted.run, %error, "mail cannot be read"),
            }
        }
    }

    /// Asks something of a run.
    pub(crate) fn ask(self: &Arc<Self>, run: RunNo, ask: Ask) {
        self.with_live(run, |state| state.ask(ask));
        // The engine may have stopped between the look and the question: then nobody will play this run.
        if let Some(error) = self.trouble() {
            let live = self.runs().get(run);
            let asks = live.map(|live| std::mem::take(&mut live.lock().asks)).unwrap_or_default();
            asks.into_iter().for_each(|(_, ask)| ask.refuse(error.clone()));
        }
    }

    /// Has a run looked at: there may be mail for it that nobody brought.
    pub(crate) fn poke(self: &Arc<Self>, run: RunNo) {
        loop {
            let live = self.runs().get_or_create(run);
            let mut state = live.lock();
            if state.gone {
                continue;
            }
            if matches!(state.stage, Stage::Idle | Stage::Parked) {
                self.enqueue(&live, &mut state);
            }
            return;
        }
    }

    /// Queues a run that is at rest and has work.
    pub(crate) fn wake(self: &Arc<Self>, live: &Arc<Live>, state: &mut LiveState) {
        let asked = !state.asks.is_empty() || !state.resets.is_empty();
        let parked_but_asked = state.stage == Stage::Parked && asked;
        if (state.stage == Stage::Idle && state.has_work()) || parked_but_asked {
            self.enqueue(live, state);
        }
    }

    fn enqueue(self: &Arc<Self>, live: &Arc<Live>, state: &mut LiveState) {
        state.stage = Stage::Queued;
        let (this, live) = (self.clone(), live.clone());
        let queue = self.worker_of(&live).map(|worker| worker.queue().clone());
        self.host.play(queue.as_ref(), Box::new(move || this.play(live)));
    }

    /// Who plays a run. If that cannot be read now, whatever is wrong is said when the run is loaded.
    pub(crate) fn worker_of<'a>(&self, live: &'a Live) -> Option<&'a Arc<Worker>> {
        if live.worker().is_none() {
            match self.workers.len() {
                1 => live.is_played_by(self.first_worker()),
                _ => live.is_played_by(self.worker(&self.store.run(live.no).ok()??.queue)),
            }
        }
        live.worker()
    }

    /// A run closed: those who wait are told, and what runs for it ends.
    pub(crate) fn closed(self: &Arc<Self>, run: RunNo, status: Status, outcome: &Outcome) {
        self.waits().closed(run, status, outcome);
        self.forget(run);
    }

    /// A run was closed from outside: all that was pending ended with it.
    pub(crate) fn closed_elsewhere(self: &Arc<Self>, run: RunNo) {
        self.give_up_locals(run, "the run is closed");
        let left = self.timers().fired_of(run);
        for row in left {
            self.end_timer(row);
        }
        match self.store.run(run) {
            Ok(Some(row)) => self.closed(run, row.status, &outcome_of(row.result.as_deref())),
            Ok(None) => self.forget(run),
            Err(error) => tracing::error!(%run, %error, "a closed run cannot be read"),
        }
        // After it is marked as gone: whoever adds tasks looks at that mark when they are added.
        self.give_up_tasks(run, |_| true);
        self.dispatch();
    }

    /// Takes these tasks of a run off the desk, and stops whoever is at them.
    pub(crate) fn give_up_tasks(self: &Arc<Self>, run: RunNo, is_over: impl Fn(TaskNo) -> bool) {
        let seqs = self.desk().of_run(run);
        for seq in seqs {
            let mut desk = self.desk();
            let over = desk.get(run, seq).is_some_and(|task| is_over(task.no));
            let task = if over { desk.remove(run, seq) } else { None };
            drop(desk);
            if let Some(grip) = task.and_then(|task| task.grip()) {
                self.give_up(&grip, "the run is closed");
            }
        }
    }

    /// Takes a run out of memory. Whoever plays it finds out when it commits.
    pub(crate) fn forget(self: &Arc<Self>, run: RunNo) {
        // Gone from the map and marked as gone in one step, so that nobody brings it anything in between.
        let mut runs = self.runs();
        let Some(live) = runs.remove(run) else { return };
        let mut state = live.lock();
        state.gone = true;
        state.stuck = None;
        drop(runs);
        let (body, asks) = (state.body.take(), std::mem::take(&mut state.asks));
        drop(state);
        for (_, ask) in asks {
            // Asked while it closed: asked again, of the closed run.
            self.ask(run, ask);
        }
        if let Some(body) = body {
            self.later(move |_| drop(body));
        }
        self.end_trial(&live);
    }

    pub(crate) fn own_timer(&self, at: Timestamp, due: Due) -> AlarmNo {
        let mut timers = self.timers();
        let alarm = timers.own(at, due);
        let next = timers.next();
        drop(timers);
        if let Some(next) = next {
            self.host.wake_at(next);
        }
        alarm
    }

    pub(crate) fn cancel_alarms(&self, alarms: &[AlarmNo]) {
        if !alarms.is_empty() {
            let mut timers = self.timers();
            alarms.iter().for_each(|alarm| timers.cancel(*alarm));
        }
    }
}

/// What a run came to, as the store keeps it.
pub(crate) fn outcome_of(result: Option<&[u8]>) -> Outcome {
    let unreadable = |why: String| {
        let failure = dacapo_core::Failure::application(format!("the result of the run cannot be read: {why}"));
        Outcome::Failed(Box::new(failure))
    };
    match result.map(minicbor::decode) {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => unreadable(error.to_string()),
        None => unreadable("there is none".to_owned()),
    }
}
