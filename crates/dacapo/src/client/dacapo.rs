//! An opened store, before anything is served.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Name, OwnPolicy};
use dacapo_engine::{Cache, Engine, Options, Reader, Threads};
use dacapo_store::{MemoryStore, Store};
use tokio::runtime::Handle;

use crate::client::url::Place;
use crate::client::{App, Error, IntoName, Patience, Result, Runs};
use crate::{Catalog, Register};

/// An opened store. Set it up, then [serve](Dacapo::serve) what the program can do.
#[must_use = "an opened store does nothing; serve workflows and activities on it, or look at its runs"]
pub struct Dacapo {
    store: Arc<dyn Store>,
    read_only: bool,
    options: Options,
    turn_threads: usize,
    deadlock_timeout: Duration,
    patience: Patience,
    runs: Runs,
}

impl Dacapo {
    /// Opens a store: `memory:`, `sqlite:orders.db`, or `sqlite:orders.db?mode=ro` to look at a file that another process
    /// serves.
    pub async fn open(url: &str) -> Result<Self> {
        let place = Place::parse(url)?;
        let opened = tokio::task::spawn_blocking(move || open(place)).await;
        let (store, read_only) = opened.map_err(|error| Error::System(error.to_string()))??;
        Ok(Self::over(store, read_only))
    }

    /// Over a store of your own.
    pub fn over_store(store: Arc<dyn Store>) -> Self {
        Self::over(store, false)
    }

    fn over(store: Arc<dyn Store>, read_only: bool) -> Self {
        let turn_threads = std::thread::available_parallelism().map_or(2, usize::from) + 1;
        let runs = Runs::new(Reader::new(store.clone()));
        Self {
            store,
            read_only,
            options: Options::default(),
            turn_threads,
            deadlock_timeout: DEADLOCK_TIMEOUT,
            patience: Patience::default(),
            runs,
        }
    }

    /// The runs in it, to look at.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Serves this queue instead of `default`; called again, one more. Starts that name no queue go to the first of them
    /// in alphabetical order.
    pub fn queue(mut self, queue: impl IntoName) -> Self {
        let default = BTreeSet::from([Name::from_static(dacapo_engine::DEFAULT_QUEUE)]);
        if self.options.queues == default {
            self.options.queues.clear();
        }
        self.options.queues.insert(queue.into_name());
        self
    }

    /// How many runs stay in memory between turns: 10,000 by default. With 0 every turn is played from the beginning.
    pub fn cache(mut self, runs: usize) -> Self {
        self.options.cache = Cache::AtMost(runs);
        self
    }

    /// Whether every turn is played twice and compared, which finds code that decides by something else than what was
    /// recorded. On in debug builds, off in release builds by default.
    pub fn double_play(mut self, on: bool) -> Self {
        self.options.double_play = on;
        self
    }

    /// The most bytes of one payload: 2 MiB by default.
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.options.payload_limit = bytes;
        self
    }

    /// The most messages that wait for one run: 200,000 by default. Senders beyond that get an error.
    pub fn mail_limit(mut self, messages: usize) -> Self {
        self.options.mail_limit = messages;
        self
    }

    /// The most attempts of activities at a time: 200 by default.
    pub fn attempts(mut self, most: usize) -> Self {
        self.options.attempts = most;
        self
    }

    /// How many results one turn takes at most: 256 by default.
    pub fn completions_per_turn(mut self, most: usize) -> Self {
        self.options.completions_per_turn = most;
        self
    }

    /// How many threads play turns: one more than there are processors by default.
    pub fn turn_threads(mut self, threads: usize) -> Self {
        self.turn_threads = threads;
        self
    }

    /// How long one turn may take before it counts as a deadlock: its thread is abandoned and its run parked. 2 s by
    /// default; zero never gives up. Time in which the thread merely waited for a processor does not count.
    pub fn deadlock_timeout(mut self, timeout: Duration) -> Self {
        self.deadlock_timeout = timeout;
        self
    }

    /// How long a shutdown lets attempts run to their end: 10 s by default.
    pub fn shutdown_grace_period(mut self, time: Duration) -> Self {
        self.patience.grace = time;
        self
    }

    /// How long a shutdown then waits for attempts that were asked to stop: 5 s by default.
    pub fn shutdown_force_timeout(mut self, time: Duration) -> Self {
        self.patience.force = time;
        self
    }

    /// How long after a signal the process ends with exit code 1 if it has not ended by itself: 60 s by default.
    pub fn force_exit_timeout(mut self, time: Duration) -> Self {
        self.patience.force_exit = time;
        self
    }

    /// The name of this build, kept with every turn it plays, so that a report can say which build recorded what.
    pub fn build(mut self, name: impl IntoName) -> Self {
        self.options.build = name.into_name();
        self
    }

    /// The policy of runs that are pinned to one of your own.
    pub fn own_policy(mut self, policy: OwnPolicy) -> Self {
        self.options.own_policy = Some(policy);
        self
    }

    /// Serves workflows and activities, and goes on with every run that earlier processes left. Serving happens in the
    /// background until the [`App`] is shut down or the last copy of it is dropped.
    pub async fn serve<P>(mut self, items: impl Register<P>) -> Result<App> {
        if self.read_only {
            return Err(dacapo_engine::EngineError::ReadOnly.into());
        }
        for (what, zero) in [
            ("attempts at a time", self.options.attempts == 0),
            ("results in a turn", self.options.completions_per_turn == 0),
            ("threads for turns", self.turn_threads == 0),
        ] {
            if zero {
                return Err(Error::System(format!("a worker with 0 {what} could do nothing: set 1 or more")));
            }
        }
        let catalog = Catalog::of(items)?;
        self.options.registry = catalog.registry;
        self.options.pins = catalog.pins.into_iter().collect();
        let system = |error: std::io::Error| Error::System(format!("a thread cannot be started: {error}"));
        let host = Threads::new(self.turn_threads, self.deadlock_timeout, Handle::current()).map_err(system)?;
        let (store, options, for_engine) = (self.store, self.options, host.clone());
        let opened = tokio::task::spawn_blocking(move || Engine::open(store, for_engine, options)).await;
        let engine = opened.map_err(|error| Error::System(error.to_string()))??;
        host.watch(&engine).map_err(system)?;
        Ok(App::new(engine, host, self.runs, self.patience))
    }
}

/// How long a turn may take.
const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(2);

fn open(place: Place) -> Result<(Arc<dyn Store>, bool)> {
    match place {
        Place::Memory => Ok((Arc::new(MemoryStore::new()), false)),
        #[cfg(feature = "sqlite")]
        Place::Sqlite { path, read_only } => {
            use dacapo_sqlite::SqliteStore;
            let store = if read_only { SqliteStore::open_read_only(&path) } else { SqliteStore::open(&path) };
            Ok((Arc::new(store.map_err(dacapo_engine::EngineError::from)?), read_only))
        }
        #[cfg(not(feature = "sqlite"))]
        Place::Sqlite { .. } => {
            Err(Error::Url("SQLite is not part of this build: enable the feature `sqlite`".to_owned()))
        }
    }
}
