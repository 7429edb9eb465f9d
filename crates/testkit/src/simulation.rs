//! The engine kit: a whole engine in one thread, on virtual time, over a real store. Its process can die and be
//! restarted.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Failure, Payload, Timestamp};
use dacapo_engine::{Cache, Engine, NewStart, Options, RunId, StartedAs};
use dacapo_store::{Filter, MemoryStore, RunRow, Status, Store};
use dacapo_sync::allow_blocking;

use crate::crash::{Crash, Moment};
use crate::fake::Fakes;
use crate::ledger::AttemptCounts;
use crate::store_layer::LayeredStore;
use crate::virtual_host::{VirtualHost, World};
use crate::virtual_time::VirtualTime;

/// An engine in one thread, whose time moves when no work is left.
pub struct Simulation {
    opens: Opens,
    store: Arc<dyn Store>,
    mortal: Arc<LayeredStore<Arc<Crash>>>,
    options: Options,
    crash: Arc<Crash>,
    world: World,
    host: Process,
    engine: Engine,
}

/// The host of a process. It drops its work when the process ends, because the work holds the engine, which holds the
/// host.
struct Process(Arc<VirtualHost>);

impl std::ops::Deref for Process {
    type Target = VirtualHost;

    fn deref(&self) -> &VirtualHost {
        &self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.disconnect();
    }
}

/// The function with which each process opens the store that the one before left.
pub(crate) type Opens = Arc<dyn Fn() -> Arc<dyn Store>>;

/// The number of failed plays after which waiting is not expected to help a stuck run.
const HOPELESS: u32 = 12;

/// The number of wakes after which a test is not expected to end.
const MOST_WAKES: usize = 20_000;

/// When virtual time begins: an arbitrary moment.
pub(crate) const BEGIN: Timestamp = Timestamp::from_millis(1_000_000_000_000);

impl Simulation {
    /// Creates a simulation over a store in memory.
    pub fn new(options: Options) -> Self {
        Self::over(Arc::new(MemoryStore::new()), options)
    }

    /// Creates a simulation over this store.
    pub fn over(store: Arc<dyn Store>, options: Options) -> Self {
        let time = VirtualTime::starting_at(BEGIN);
        let world = World::new(time.clone(), Fakes::on(time), None);
        Self::opening(Arc::new(move || store.clone()), options, world, None)
    }

    /// Creates a simulation whose processes open their store with `opens`, and of which the first dies at `dies_at`.
    pub(crate) fn opening(opens: Opens, options: Options, world: World, dies_at: Option<u64>) -> Self {
        let crash = dies_at.map_or_else(Crash::never, Crash::at);
        let host = VirtualHost::new(world.clone(), crash.clone());
        let store = opens();
        let mortal = LayeredStore::new(store.clone(), crash.clone());
        let engine = Engine::open(mortal.clone(), host.clone(), options.clone()).expect("the store can be opened");
        let host = Process(host);
        Self { opens, store, mortal, options, crash, world, host, engine }
    }

    /// Starts another process on the same store that dies at this moment, counted from its beginning.
    pub fn dying(self, moment: u64) -> Self {
        let options = self.options.clone();
        self.followed_by(options, Some(moment))
    }

    /// Returns how many moments have passed at which the process could have died.
    pub fn moments(&self) -> u64 {
        self.crash.passed()
    }

    /// Returns the moment at which the process died, if it did.
    pub fn died(&self) -> Option<Moment> {
        self.crash.died()
    }

    /// Returns how many attempts there were, in all processes so far.
    pub fn attempts(&self) -> AttemptCounts {
        self.world.ledger.attempts()
    }

    /// Starts another process on the same store: memory is gone, time goes on.
    pub fn restart(self) -> Self {
        let options = self.options.clone();
        self.redeploy(options)
    }

    /// Starts another process on the same store, with other code or settings.
    pub fn redeploy(self, options: Options) -> Self {
        self.followed_by(options, None)
    }

    /// Starts another process on the same store, which dies at `dies_at`.
    pub(crate) fn followed_by(self, options: Options, dies_at: Option<u64>) -> Self {
        let Self { opens, store, mortal, world, host, engine, .. } = self;
        allow_blocking(|| world.ledger.count_lost(&store));
        engine.stop();
        // Releases the file as the operating system would, even if the test still holds the dead engine.
        host.disconnect();
        mortal.disconnect();
        drop((engine, store));
        Self::opening(opens, options, world, dies_at)
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Makes attempts of this activity ignore their cancellation, as code does that blocks or spins.
    pub fn ignore_cancellation(&self, activity: &'static str) {
        self.host.ignore_cancellation(activity.into());
    }

    /// Returns why the engine wanted the process to end, each time it did.
    pub fn ends(&self) -> Vec<String> {
        self.host.ends()
    }

    /// Returns the store itself.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn shared_store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.host.clock()
    }

    /// Returns the moment at which the engine wants to be woken, if it waits for one.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.host.next_wake()
    }

    /// Sets the machine's clock forward by this much. No time passes for running code.
    pub fn step_clock(&self, by: Duration) {
        self.host.step_clock(by);
        self.tick();
        self.settle();
    }

    fn tick(&self) {
        allow_blocking(|| self.engine.tick());
    }

    /// Lets this much time pass without waking the engine, as on a machine where its clock does not get to run.
    pub fn pass_unnoticed(&self, time: Duration) {
        self.host.pass(time);
    }

    /// Does one piece of work. Returns false if there is none now.
    pub fn step(&self) -> bool {
        self.host.step()
    }

    /// Does all work that is due without time passing.
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

    /// Lets this much time pass, and does all work that is due meanwhile.
    pub fn advance(&self, time: Duration) {
        let until = self.host.clock().after(time);
        self.settle();
        while let Some(wake) = self.host.next_wake().filter(|wake| *wake <= until && !self.crash.is_dead()) {
            self.host.move_to(wake);
            self.tick();
            self.settle();
        }
        // A process that died meanwhile does not reach the end.
        if !self.crash.is_dead() {
            self.host.move_to(until);
            self.tick();
            self.settle();
        }
    }

    /// Lets time pass until only stuck runs are left to be tried again, or for a hundred years.
    pub fn play_out(&self) {
        self.play_out_until(Self::is_hopeless);
    }

    /// Lets time pass until no work is left, or until `is_enough` returns true.
    fn play_out_until(&self, mut is_enough: impl FnMut(&Self) -> bool) {
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

    /// Lets time pass until a future is ready, and returns its value. Returns none if no work is left that could
    /// complete it, or once `is_enough` returns true.
    pub(crate) fn play_until_ready<T>(
        &self,
        future: impl Future<Output = T>,
        is_enough: impl Fn(&Self) -> bool,
    ) -> Option<T> {
        let mut future = pin!(future);
        let mut value = self.try_wait(future.as_mut());
        if value.is_none() {
            self.play_out_until(|sim| {
                value = sim.try_wait(future.as_mut());
                value.is_some() || is_enough(sim)
            });
        }
        value.or_else(|| self.try_wait(future))
    }

    /// Returns whether a run is stuck and was tried so often that waiting is not expected to help.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.most_stuck().is_some_and(|run| failed_plays(&run) >= HOPELESS)
    }

    /// Returns the stuck run that was tried most often.
    pub(crate) fn most_stuck(&self) -> Option<RunRow> {
        let filter = Filter { stuck: true, ..Filter::default() };
        let stuck = self.store.list(&filter, None, 10).unwrap_or_default();
        stuck.into_iter().max_by_key(failed_plays)
    }

    /// Waits for a future, while work is done but no time passes. Returns none if no work is left that could complete
    /// it.
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

    /// Waits for a future as [`Self::try_wait`] does, and panics if it cannot complete.
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
    ) -> Result<StartedAs, Error> {
        let new = NewStart {
            workflow: workflow.into(),
            workflow_id: workflow_id.into(),
            input: vec![input.into()],
            ..NewStart::default()
        };
        self.wait(self.engine.start(new))
    }

    /// Lets time pass until this run is closed, and returns its result.
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

    /// Returns the history of a run, as text.
    pub fn history(&self, workflow_id: &'static str) -> String {
        let transcript = allow_blocking(|| self.engine.reader().history(&RunId::of(workflow_id)));
        transcript.expect("the history can be read").to_text()
    }

    /// Returns the settings, to be changed for another process.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

/// Returns how often a stuck run was played in vain.
fn failed_plays(run: &RunRow) -> u32 {
    run.stuck.as_ref().map_or(0, |stuck| stuck.attempts)
}

/// The cache settings to test with. The behaviour of runs never depends on them.
pub const CACHES: [Cache; 5] =
    [Cache::AtMost(0), Cache::AtMost(1), Cache::AtMost(10_000), Cache::Random(1), Cache::Random(2)];
