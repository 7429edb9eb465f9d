//! The engine as its users see it.

use std::sync::Arc;

use dacapo_core::Timestamp;
use dacapo_store::{RunFilter, Store, StoreError};

use crate::activity::attempt::Origins;
use crate::api::start::check_name;
use crate::host::Host;
use crate::inner::Inner;
use crate::{EngineError, Options, Reader};

/// An engine over a store. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    reader: Reader,
}

impl Engine {
    /// An engine over this store. It takes over all that earlier processes left: tasks, timers and mail. No run is loaded
    /// for that. Reports of panics say where they happened: for that the process gets a panic hook, which calls the one that
    /// was there.
    pub fn open(store: Arc<dyn Store>, host: Arc<dyn Host>, options: Options) -> Result<Self, EngineError> {
        if options.queues.is_empty() {
            return Err(EngineError::BadInput("an engine that serves no queue could do nothing".to_owned()));
        }
        options.queues.keys().try_for_each(|queue| check_name("a queue", queue))?;
        dacapo_core::keep_panic_places();
        let inner = Arc::new(Inner::new(store.clone(), host, options));
        inner.take_over()?;
        Ok(Self { inner, reader: Reader::new(store) })
    }

    /// Looks at runs without disturbing them.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Does all that is due. Called by the host at the time it was asked for.
    pub fn tick(&self) {
        self.inner.tick();
    }

    /// Stops the engine: nothing more is played or written, attempts are given up, those who wait are told. What was
    /// committed stays, and the next engine on the store, in this process or another, goes on from there.
    pub fn stop(&self) {
        self.inner.end();
    }

    /// How many runs are in memory.
    pub fn runs_in_memory(&self) -> usize {
        self.inner.runs().len()
    }

    /// Takes a run out of memory, if it is at rest. It is loaded again when something comes for it.
    pub fn evict_idle(&self) {
        self.inner.evict_idle();
    }
}

impl Inner {
    /// All that can wake a run is a row of mail, timers or tasks, or a run that is stuck.
    fn take_over(self: &Arc<Self>) -> Result<(), StoreError> {
        if !self.strike()? {
            // The process dies this very moment, and nothing follows any more.
            self.halt(EngineError::ShutDown);
            return Ok(());
        }
        self.refill();
        let queues: Vec<_> = self.options.queues.keys().cloned().collect();
        let (mut above, mut origins) = (0, Origins::default());
        loop {
            let rows = self.store.tasks(&queues, above, PAGE)?;
            rows.iter().try_for_each(|row| self.adopt(row, &mut origins))?;
            match rows.last() {
                Some(last) if rows.len() == PAGE => above = last.no.0,
                _ => break,
            }
        }
        for run in self.store.with_unseen_mail(usize::MAX >> 1)? {
            self.poke(run);
        }
        let stuck = RunFilter { stuck: true, ..RunFilter::default() };
        let mut before = None;
        loop {
            let rows = self.store.list(&stuck, before, PAGE)?;
            for row in &rows {
                let attempts = row.stuck.as_ref().map_or(1, |stuck| stuck.attempts);
                self.with_live(row.no, |state| state.strikes = attempts);
                self.poke(row.no);
            }
            match rows.last() {
                Some(last) if rows.len() == PAGE => before = Some(last.no),
                _ => break,
            }
        }
        let tried = self.trials().tried();
        if let Some(run) = tried {
            self.poke(run);
        }
        self.begin_retention()?;
        // What is due is due at once.
        self.host.wake_at(Timestamp::default());
        Ok(())
    }

    fn evict_idle(self: &Arc<Self>) {
        let lives = self.runs().all();
        for live in lives {
            let mut state = live.lock();
            let at_rest = state.stage == crate::run::cached_run::Stage::Idle && !state.has_work();
            let holds = state.body.as_ref().is_some_and(|body| !body.held.is_empty());
            let body = if at_rest && !holds { state.body.take() } else { None };
            drop(state);
            if at_rest && !holds {
                self.leave(&live);
            }
            drop(body);
        }
    }
}

const PAGE: usize = 1_000;
