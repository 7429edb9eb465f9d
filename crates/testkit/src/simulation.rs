//! The engine kit: a whole engine in one thread, on virtual time, over a real store. It can die and begin again.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dacapo_core::{Failure, Payload, Timestamp};
use dacapo_engine::{Cache, Engine, EngineError, NewStart, Options, RunId, StartedAs};
use dacapo_store::{MemoryStore, RunFilter, Status, Store, Stuck};
use dacapo_sync::allow_blocking;

use crate::crash::{Crash, Moment};
use crate::front::Fronted;
use crate::ledger::{Attempts, Ledger};
use crate::virtual_host::VirtualHost;

/// An engine in a thread, whose time moves when there is nothing else to do.
pub struct Simulation {
    opens: Opens,
    store: Arc<dyn Store>,
    mortal: Arc<Fronted<Arc<Crash>>>,
    options: Options,
    crash: Arc<Crash>,
    ledger: Arc<Ledger>,
    host: Process,
    engine: Engine,
}

/// The host of a process, which lets go of its work when it is gone: the work holds the engine, which holds the host.
struct Process(Arc<VirtualHost>);

impl std::ops::Deref for Process {
    type Target = VirtualHost;

    fn deref(&self) -> &VirtualHost {
        &self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.bury();
    }
}

/// How each process opens the store that the one before left.
pub(crate) type Opens = Arc<dyn Fn() -> Arc<dyn Store>>;

/// A run that could not be played so often will not be played by waiting.
const HOPELESS: u32 = 12;

/// A story that wakes the engine so often does not end.
const MOST_WAKES: usize = 20_000;

/// When virtual time begins: some moment that is none in particular.
const BEGIN: Timestamp = Timestamp::from_millis(1_000_000_000_000);

impl Simulation {
    /// A sim over a store in memory.
    pub fn new(options: Options) -> Self {
        Self::over(Arc::new(MemoryStore::new()), options)
    }

    /// A sim over this store.
    pub fn over(store: Arc<dyn Store>, options: Options) -> Self {
        Self::opening(Arc::new(move || store.clone()), options, None)
    }

    /// A sim whose processes open their store with this, and of which the first dies at this moment.
    pub(crate) fn opening(opens: Opens, options: Options, dies_at: Option<u64>) -> Self {
        Self::with(opens, options, BEGIN, 0, dies_at, Arc::default())
    }

    fn with(
        opens: Opens,
        options: Options,
        now: Timestamp,
        ids: u64,
        dies_at: Option<u64>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let crash = dies_at.map_or_else(Crash::never, Crash::at);
        let host = VirtualHost::new(now, ids, crash.clone(), ledger.clone());
        let store = opens();
        let mortal = Fronted::new(store.clone(), crash.clone());
        let engine = Engine::open(mortal.clone(), host.clone(), options.clone()).expect("the store can be opened");
        let host = Process(host);
        Self { opens, store, mortal, options, crash, ledger, host, engine }
    }

    /// The same process, dying to die at this moment, counted from its beginning.
    pub fn dying(self, moment: u64) -> Self {
        let options = self.options.clone();
        self.followed_by(options, Some(moment))
    }

    /// How many moments have passed at which the process could have died.
    pub fn moments(&self) -> u64 {
        self.crash.passed()
    }

    /// The moment at which it died, if it did.
    pub fn died(&self) -> Option<Moment> {
        self.crash.died()
    }

    /// How many attempts there were, in all processes so far.
    pub fn attempts(&self) -> Attempts {
        self.ledger.attempts()
    }

    /// Another process on the same store: memory is gone, time goes on.
    pub fn restart(self) -> Self {
        let options = self.options.clone();
        self.redeploy(options)
    }

    /// Another process on the same store, with other code or settings.
    pub fn redeploy(self, options: Options) -> Self {
        self.followed_by(options, None)
    }

    /// Another process on the same store, which dies at this moment.
    pub(crate) fn followed_by(self, options: Options, dies_at: Option<u64>) -> Self {
        let Self { opens, store, mortal, ledger, host, engine, .. } = self;
        allow_blocking(|| ledger.count_lost(&store));
        engine.stop();
        // The file is let go of as the operating system would do it, even if somebody still holds the dead engine.
        host.bury();
        mortal.bury();
        drop((engine, store));
        Self::with(opens, options, host.clock(), host.ids_used(), dies_at, ledger)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Attempts of this activity go on although nobody wants them, as those do that block or spin.
    pub fn deafen(&self, activity: &'static str) {
        self.host.deafen(activity.into());
    }

    /// Why the engine wanted the process to end, each time it said so.
    pub fn ends(&self) -> Vec<String> {
        self.host.ends()
    }

    /// The store itself.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn shared_store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.host.clock()
    }

    /// The moment at which the engine wants to be woken, if it waits for one.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.host.next_wake()
    }

    /// Sets the machine's clock forward by this much. Time does not pass for what runs.
    pub fn step_clock(&self, by: Duration) {
        self.host.step_clock(by);
        self.tick();
        self.settle();
    }

    fn tick(&self) {
        allow_blocking(|| self.engine.tick());
    }

    /// Lets this much time pass without the engine being woken, as on a machine where its clock does not get to run.
    pub fn pass_unnoticed(&self, time: Duration) {
        self.host.pass(time);
    }

    /// Does one piece of work. False if there is none now.
    pub fn step(&self) -> bool {
        self.host.step()
    }

    /// Does all that can be done without time passing.
    pub fn settle(&self) {
        loop {
            while self.host.step() {}
            match self.host.next_wake() {
                Some(wake) if wake <= self.host.clock() && !self.crash.is_dead() => {
                    self.host.move_to(wake);
                    self.tick();
                }
                _ => return,
            }
        }
    }

    /// Lets this much time pass, and does all that is due on the way.
    pub fn advance(&self, time: Duration) {
        let until = self.host.clock().after(time);
        self.settle();
        while let Some(wake) = self.host.next_wake().filter(|wake| *wake <= until && !self.crash.is_dead()) {
            self.host.move_to(wake);
            self.tick();
            self.settle();
        }
        // A process that died on the way did not live to see the end.
        if !self.crash.is_dead() {
            self.host.move_to(until);
            self.tick();
            self.settle();
        }
    }

    /// Lets time pass until nothing is left to do but to try stuck runs again, or for a hundred years.
    pub fn play_out(&self) {
        self.play_out_until(|sim| sim.most_stuck().is_some_and(|stuck| stuck.attempts >= HOPELESS));
    }

    /// The same, or until this is so.
    pub(crate) fn play_out_until(&self, is_enough: impl Fn(&Self) -> bool) {
        let end = self.host.clock().after(Duration::from_secs(100 * 365 * 86_400));
        self.settle();
        for _ in 0..MOST_WAKES {
            let wake = self.host.next_wake().filter(|wake| *wake <= end && !self.crash.is_dead());
            let Some(wake) = wake.filter(|_| !is_enough(self)) else { return };
            self.host.move_to(wake);
            self.tick();
            self.settle();
        }
    }

    /// Why the run that was tried most often does not go on.
    pub(crate) fn most_stuck(&self) -> Option<Stuck> {
        let filter = RunFilter { stuck: true, ..RunFilter::default() };
        let stuck = self.store.list(&filter, None, 10).unwrap_or_default();
        stuck.into_iter().filter_map(|run| run.stuck).max_by_key(|stuck| stuck.attempts)
    }

    /// Waits for something, while work is done but no time passes. None if it cannot come about.
    pub fn try_wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        let mut cx = Context::from_waker(Waker::noop());
        let mut poll = || allow_blocking(|| future.as_mut().poll(&mut cx));
        loop {
            if let Poll::Ready(value) = poll() {
                return Some(value);
            }
            if !self.host.step() {
                self.settle();
                return match poll() {
                    Poll::Ready(value) => Some(value),
                    Poll::Pending => None,
                };
            }
        }
    }

    /// The same for what must come about.
    #[track_caller]
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.try_wait(future).expect("nothing is left to do, and what is waited for has not come")
    }

    /// Starts a workflow with this id and input.
    pub fn start(
        &self,
        workflow: &'static str,
        workflow_id: &'static str,
        input: impl Into<Payload>,
    ) -> Result<StartedAs, EngineError> {
        let new = NewStart {
            workflow: workflow.into(),
            workflow_id: workflow_id.into(),
            input: vec![input.into()],
            ..NewStart::default()
        };
        self.wait(self.engine.start(new))
    }

    /// Lets time pass until this run is closed, and gives what it came to.
    #[track_caller]
    pub fn result(&self, workflow_id: &'static str) -> (Status, Result<Payload, Failure>) {
        self.play_out();
        let result = self.try_wait(self.engine.result(&RunId::of(workflow_id)));
        match result {
            Some(result) => result.expect("the run is known"),
            None => {
                let described = allow_blocking(|| self.engine.describe(&RunId::of(workflow_id)));
                panic!("run {workflow_id} does not end: {described:#?}");
            }
        }
    }

    /// The history of a run, as text.
    pub fn history(&self, workflow_id: &'static str) -> String {
        let transcript = allow_blocking(|| self.engine.reader().history(&RunId::of(workflow_id)));
        transcript.expect("the history can be read").to_text()
    }

    /// The settings, to be changed for another process.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

/// Every way in which runs can stay in memory or leave it. What they do never depends on it.
pub const CACHES: [Cache; 5] =
    [Cache::AtMost(0), Cache::AtMost(1), Cache::AtMost(10_000), Cache::Random(1), Cache::Random(2)];
