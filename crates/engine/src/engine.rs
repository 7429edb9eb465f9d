//! The engine as its users see it.

use std::sync::{Arc, Weak};

use dacapo_client::{Client, Error, Feature};
use dacapo_store::Store;

use crate::host::Host;
use crate::lifecycle::halt::halt_and_close;
use crate::lifecycle::recover::recover;
use crate::lifecycle::zombies::DriverHost;
use crate::names::check_name;
use crate::nodes::claim::claim;
use crate::options::Options;
use crate::read::Reader;
use crate::run::cached_run::PlayState;
use crate::run::forget::leave;
use crate::shared::{Entries, Shared};
use crate::timer::fire;
use crate::turn::drive::play_run;

/// An engine over a store. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    reader: Reader,
    /// Whether it carries out calls of other nodes, and so asks none of them.
    pub(crate) is_called: bool,
}

/// The engine as the client that carries out a call of another node, and asks no other.
fn client(shared: &Arc<Shared>) -> Box<dyn Client> {
    let reader = Reader::new(shared.store_for_readers()).with_crash_limits(shared.options.crash_limits);
    Box::new(Engine { shared: shared.clone(), reader, is_called: true })
}

/// A weak reference to an engine.
pub(crate) struct WeakEngine(Weak<Shared>);

impl Engine {
    /// Opens an engine over this store. The engine takes over all that earlier processes left: tasks, timers and
    /// messages. It loads no run for that. Reports of panics say where they happened: for that the process gets a panic
    /// hook, which calls the one that was there. Blocks until the store was read.
    pub fn open(store: Arc<dyn Store>, host: Arc<dyn Host>, mut options: Options) -> Result<Self, Error> {
        if !store.has_backup() {
            options.capabilities.features.remove(&Feature::Backup);
        }
        if let Some(folder) = &options.state_dir {
            dacapo_sync::allow_blocking(|| store.keep_in(folder))?;
        }
        if !store.keeps_notes() {
            options.capabilities.features.remove(&Feature::Quarantine);
        }
        if options.queues.is_empty() {
            return Err(Error::InvalidArgument("an engine that serves no queue could do nothing".to_owned()));
        }
        options.queues.keys().try_for_each(|queue| check_name("queue name", queue))?;
        dacapo_core::keep_panic_places();
        let shared = Arc::new(Shared::new(store.clone(), host, options, Entries { play_run, claim, client }));
        let _ = shared.turn_host.set(Arc::new(DriverHost(Arc::downgrade(&shared))));
        dacapo_sync::allow_blocking(|| recover(&shared))?;
        let reader = Reader::new(store).with_crash_limits(shared.options.crash_limits);
        Ok(Self { shared, reader, is_called: false })
    }

    /// A reader of runs, which does not disturb them.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Does all that is due. The host calls it at the time that the engine asked for.
    pub fn tick(&self) {
        fire::tick(&self.shared);
    }

    pub(crate) fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.shared))
    }

    /// Stops the engine: nothing more is played or written, attempts are given up, and callers that wait get an error.
    /// What was committed stays, and the next engine on the store, in this process or another, goes on from there.
    /// Blocks until the store is closed.
    pub fn stop(&self) {
        dacapo_sync::allow_blocking(|| {
            let store = halt_and_close(&self.shared);
            // A shutdown that was about to end may never report: its callers get their answer here.
            self.shared.shutdown.report(self.shared.host.steady_now(), Vec::new(), store);
        });
    }

    /// The number of runs in memory.
    pub fn runs_in_memory(&self) -> usize {
        self.shared.runs.len()
    }

    /// Evicts idle runs. They are loaded again when there is work for them.
    pub fn evict_idle(&self) {
        for cached in self.shared.runs.all() {
            let mut state = cached.lock();
            let is_idle = state.play_state == PlayState::Idle && !state.has_work() && !state.defers_turns();
            let playable = if is_idle { state.playable.take() } else { None };
            drop(state);
            if is_idle {
                leave(&self.shared, &cached);
            }
            drop(playable);
        }
    }
}

impl WeakEngine {
    /// Does all that is due. False if the engine is gone.
    pub(crate) fn tick(&self) -> bool {
        self.0.upgrade().map(|shared| fire::tick(&shared)).is_some()
    }
}
