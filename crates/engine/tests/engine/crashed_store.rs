//! A store that says what a process was doing when it died, as the test has it.

use std::sync::{Arc, Mutex};

use dacapo_store::{CrashCount, Doing, Done, MemoryStore, NoteSlot, RunningNotes, Store, Write};
use dacapo_testkit::{LayeredStore, StoreLayer};

#[derive(Default)]
pub(crate) struct CrashedStore {
    left: Mutex<Vec<Doing>>,
    /// What was begun, and what of that has ended.
    noted: Mutex<(Vec<Doing>, Vec<NoteSlot>)>,
    /// What followed from what was left, and what began, in order.
    log: Mutex<Vec<String>>,
    /// Writes about attempts and crash_count that are not done yet, while the test withholds them.
    withheld: Mutex<Option<Vec<(Write, Done)>>>,
}

impl CrashedStore {
    pub(crate) fn new() -> Arc<LayeredStore<Self>> {
        LayeredStore::new(Arc::new(MemoryStore::new()), Self::default())
    }

    /// The process dies while these are under way.
    pub(crate) fn dies_while(&self, doing: &[Doing]) {
        *self.left.lock().unwrap() = doing.to_vec();
    }

    /// Writes about attempts and crash_count take their time from here on.
    pub(crate) fn hold_up(&self) {
        *self.withheld.lock().unwrap() = Some(Vec::new());
    }

    /// Carries them out, and withholds no more.
    pub(crate) fn go_on(&self, store: &dyn Store) {
        let withheld = self.withheld.lock().unwrap().take();
        withheld.into_iter().flatten().for_each(|(write, done)| store.submit(write, done));
    }

    /// What was begun so far, and how much of it has ended.
    pub(crate) fn noted(&self) -> (Vec<Doing>, usize) {
        let noted = self.noted.lock().unwrap();
        (noted.0.clone(), noted.1.len())
    }

    /// What happened since this was asked last: crash_count that were written, what was left and is forgotten, what began.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl StoreLayer for CrashedStore {
    fn submit(&self, store: &dyn Store, write: Write, done: Done) {
        if let Write::CrashCounts(_) | Write::Attempt(_) = &write
            && let Some(withheld) = &mut *self.withheld.lock().unwrap()
        {
            return withheld.push((write, done));
        }
        if let Write::CrashCounts(all) = &write {
            let crash_count = all.iter().map(|crash_count| match crash_count {
                CrashCount::Task { crash_count, .. } => format!("task {crash_count}"),
                CrashCount::Died { seen, .. } => format!("run {}", seen + 1),
                CrashCount::Run { crash_count, .. } => format!("run {crash_count}"),
                CrashCount::Cleared(_) => "run 0".to_owned(),
            });
            self.log.lock().unwrap().extend(crash_count);
        }
        store.submit(write, done);
    }

    fn running<'a>(&'a self, _: &'a dyn Store) -> &'a dyn RunningNotes {
        self
    }
}

impl RunningNotes for CrashedStore {
    fn keeps_notes(&self) -> bool {
        true
    }

    fn began(&self, doing: Doing) -> Option<NoteSlot> {
        let mut noted = self.noted.lock().unwrap();
        noted.0.push(doing);
        self.log.lock().unwrap().push(format!("{doing:?}"));
        Some(NoteSlot(noted.0.len() - 1))
    }

    fn ended(&self, slot: NoteSlot) {
        self.noted.lock().unwrap().1.push(slot);
    }

    fn left(&self) -> Vec<Doing> {
        self.left.lock().unwrap().clone()
    }

    fn forget_left(&self) {
        let left = std::mem::take(&mut *self.left.lock().unwrap());
        if !left.is_empty() {
            self.log.lock().unwrap().push("forgotten".to_owned());
        }
    }
}
