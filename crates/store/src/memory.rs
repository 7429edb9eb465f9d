//! The store in memory, for tests and for work that need not survive the process.

mod reads;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dacapo_core::{AttributeValue, Name};
use dacapo_sync::{Mutex, MutexGuard, ranks};

use crate::{
    Doing, MessageNo, MessageRow, NoteSlot, RunNo, RunRow, RunningNotes, StoreError, TaskNo, TaskRow, TimerRow, Upkeep,
    Write, Writes, apply,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A store in memory.
pub struct MemoryStore(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    runs: BTreeMap<RunNo, RunRow>,
    requests: BTreeMap<Name, RunNo>,
    open: BTreeMap<Name, RunNo>,
    turns: BTreeMap<(RunNo, u64), Vec<u8>>,
    tasks: BTreeMap<TaskNo, TaskRow>,
    timers: BTreeMap<TimerRow, ()>,
    messages: BTreeMap<MessageNo, MessageRow>,
    keys: BTreeMap<(RunNo, Name), MessageNo>,
    attributes: BTreeMap<(RunNo, Name), AttributeValue>,
    /// Deleted runs whose turns and messages are yet to be removed.
    garbage: BTreeSet<RunNo>,
    last: i64,
}

impl Tables {
    fn attributes_of(&self, run: RunNo) -> Vec<(Name, AttributeValue)> {
        let attributes = self.attributes.iter().filter(|((of, _), _)| *of == run);
        attributes.map(|((_, name), value)| (name.clone(), value.clone())).collect()
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self(Mutex::new(ranks::STORE_READER, Tables::default()))
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Writes for MemoryStore {
    fn submit(&self, write: Write, done: crate::Done) {
        // The lock is released before the callback runs.
        let written = apply(&mut *self.tables(), &write);
        done(written);
    }
}

impl Tables {
    fn next(&mut self) -> i64 {
        self.last += 1;
        self.last
    }
}

/// No data survives the process, so no later process could read a note.
impl RunningNotes for MemoryStore {
    fn began(&self, _: Doing) -> Option<NoteSlot> {
        None
    }

    fn ended(&self, _: NoteSlot) {}

    fn left(&self) -> Vec<Doing> {
        Vec::new()
    }

    fn forget_left(&self) {}
}

impl Upkeep for MemoryStore {
    fn back_up(&self, _: &Path) -> Result<()> {
        Err(StoreError::Unsupported("a store in memory has no backup: export its histories".to_owned()))
    }

    fn has_backup(&self) -> bool {
        false
    }

    fn problems(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    crate::conformance_tests!(crate::MemoryStore::new());
}
