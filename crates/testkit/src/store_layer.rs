//! A store behind a test: reads pass through, and the test decides what happens to writes.

use std::borrow::Cow;
use std::ops::{ControlFlow, Deref};
use std::path::Path;
use std::sync::Arc;

use dacapo_core::{AttributeValue, Name, Timestamp};
use dacapo_store::{
    Belongings, Doing, Done, Filter, ListPlace, MessageRow, Nodes, NoteSlot, ReadMessages, ReadRuns, ReadTasks,
    ReadTimers, ReadTurns, RunNo, RunRow, RunningNotes, Store, StoreError, TaskNo, TaskRow, TimerRow, Upkeep, Write,
    Writes,
};
use parking_lot::RwLock;

/// A test's code between an engine and its store.
pub trait StoreLayer: Send + Sync {
    /// Submits the write to the store, or handles it in another way.
    fn submit(&self, store: &dyn Store, write: Write, done: Done);

    /// Returns the record of a turn as the engine gets it. None hides this turn and all after it.
    fn show<'a>(&self, _: u64, record: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        Some(Cow::Borrowed(record))
    }

    /// Notes that the engine has messages counted.
    fn counts_unseen(&self) {}

    /// Returns the notes of running code that the engine uses.
    fn running<'a>(&'a self, store: &'a dyn Store) -> &'a dyn RunningNotes {
        store
    }
}

/// A store with a [`StoreLayer`] between it and the engine.
pub struct LayeredStore<F> {
    layer: F,
    /// None once the process is dead, even if a test still has its engine: the file is released for the next process.
    store: RwLock<Option<Arc<dyn Store>>>,
}

impl<F: StoreLayer> LayeredStore<F> {
    /// Creates a store that goes through this layer.
    pub fn new(store: Arc<dyn Store>, layer: F) -> Arc<Self> {
        Arc::new(Self { layer, store: RwLock::new(Some(store)) })
    }

    pub(crate) fn disconnect(&self) {
        self.store.write().take();
    }

    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        let store = self.store.read().clone();
        store.ok_or_else(|| StoreError::Unavailable("its process is dead".to_owned()))
    }
}

impl<F> Deref for LayeredStore<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.layer
    }
}

impl<F: StoreLayer> Writes for LayeredStore<F> {
    fn submit(&self, write: Write, done: Done) {
        // A dead process gets no answer.
        if let Ok(store) = self.store() {
            self.layer.submit(&*store, write, done);
        }
    }
}

impl<F: StoreLayer> ReadRuns for LayeredStore<F> {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>, StoreError> {
        self.store()?.run(no)
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>, StoreError> {
        self.store()?.find(workflow_id, run_id)
    }

    fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        self.store()?.list(filter, after, limit)
    }

    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        self.store()?.oldest(filter, after, limit)
    }

    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>, StoreError> {
        self.store()?.numbers(before, limit)
    }

    fn belongings(&self, run: RunNo) -> Result<Belongings, StoreError> {
        self.store()?.belongings(run)
    }

    fn attributes(&self, run: RunNo) -> Result<Vec<(Name, AttributeValue)>, StoreError> {
        self.store()?.attributes(run)
    }

    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>, StoreError> {
        self.store()?.runs_with_crash_count()
    }

    fn closed_before(&self, moment: Timestamp, limit: usize) -> Result<Vec<RunNo>, StoreError> {
        self.store()?.closed_before(moment, limit)
    }

    fn has_remains(&self) -> Result<bool, StoreError> {
        self.store()?.has_remains()
    }

    fn count(&self, filter: &Filter, most: u64) -> Result<u64, StoreError> {
        self.store()?.count(filter, most)
    }

    fn workflows(&self) -> Result<Vec<Name>, StoreError> {
        self.store()?.workflows()
    }

    fn open_runs(&self, after: Option<RunNo>, limit: usize) -> Result<Vec<(RunNo, Name)>, StoreError> {
        self.store()?.open_runs(after, limit)
    }
}

impl<F: StoreLayer> RunningNotes for LayeredStore<F> {
    fn keep_in(&self, folder: &Path) -> Result<(), StoreError> {
        self.layer.running(&*self.store()?).keep_in(folder)
    }

    fn keeps_notes(&self) -> bool {
        self.store().is_ok_and(|store| self.layer.running(&*store).keeps_notes())
    }

    fn began(&self, doing: Doing) -> Option<NoteSlot> {
        self.layer.running(&*self.store().ok()?).began(doing)
    }

    fn ended(&self, slot: NoteSlot) {
        if let Ok(store) = self.store() {
            self.layer.running(&*store).ended(slot);
        }
    }

    fn left(&self) -> Vec<Doing> {
        self.store().map(|store| self.layer.running(&*store).left()).unwrap_or_default()
    }

    fn forget_left(&self) {
        if let Ok(store) = self.store() {
            self.layer.running(&*store).forget_left();
        }
    }
}

/// One process serves a store that has a layer.
impl<F: StoreLayer> Nodes for LayeredStore<F> {}

impl<F: StoreLayer> Upkeep for LayeredStore<F> {
    fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        self.store()?.back_up(to)
    }

    fn has_backup(&self) -> bool {
        self.store().is_ok_and(|store| store.has_backup())
    }

    fn problems(&self) -> Result<Vec<String>, StoreError> {
        self.store()?.problems()
    }
}

impl<F: StoreLayer> ReadTurns for LayeredStore<F> {
    fn turns(
        &self,
        run: RunNo,
        from: u64,
        show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store()?.turns(run, from, &mut |number, record| match self.layer.show(number, record) {
            Some(record) => show(number, &record),
            None => ControlFlow::Break(()),
        })
    }
}

impl<F: StoreLayer> ReadMessages for LayeredStore<F> {
    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>, StoreError> {
        self.store()?.asked(chain, request)
    }

    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>, StoreError> {
        self.store()?.unseen(run)
    }

    fn count_unseen(&self, run: RunNo) -> Result<usize, StoreError> {
        self.layer.counts_unseen();
        self.store()?.count_unseen(run)
    }

    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>, StoreError> {
        self.store()?.message(run, key)
    }

    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>, StoreError> {
        self.store()?.with_unseen_messages(limit)
    }
}

impl<F: StoreLayer> ReadTasks for LayeredStore<F> {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.store()?.tasks(queues, above, limit)
    }

    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>, StoreError> {
        self.store()?.task(no)
    }

    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>, StoreError> {
        self.store()?.tasks_of(run)
    }
}

impl<F: StoreLayer> ReadTimers for LayeredStore<F> {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
        self.store()?.due(until, limit)
    }

    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store()?.next_due()
    }
}
