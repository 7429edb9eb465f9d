//! The store in memory, for tests and for work that need not survive the process.

mod interruptions;
mod members;
mod node;
mod node_reads;
#[cfg(test)]
mod node_tests;
mod reads;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dacapo_client::Condition;
use dacapo_core::{AttributeValue, Name};
use dacapo_sync::{Mutex, MutexGuard, ranks};

pub use interruptions::Reading;
pub use node::{MemoryCluster, MemoryNode};

use crate::search::matches;
use crate::{
    Doing, MessageNo, MessageRow, NodeNo, Nodes, NoteSlot, RunNo, RunRow, RunningNotes, Shard, Shards, StoreError,
    TaskNo, TaskRow, TimerRow, Upkeep, Write, Writes, apply,
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
    /// The shards of each queue, where several nodes share the tables.
    shards: BTreeMap<Name, Vec<Shard>>,
    /// The node that writes, where several share the tables.
    writer: Option<Writer>,
}

/// The node that writes.
struct Writer {
    node: NodeNo,
    owned: Shards,
    queues: Vec<Name>,
}

impl Tables {
    /// Returns the runs that meet all conditions, in the order of their numbers.
    fn matching(&self, conditions: &[Condition]) -> impl Iterator<Item = &RunRow> {
        self.runs.values().filter(|row| {
            let attributes = self.attributes_of(row.no);
            conditions.iter().all(|condition| matches(condition, row, &attributes))
        })
    }

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

    /// Returns the shard of a new run: one of the node that writes, where it owns one of that queue.
    fn shard_of(&mut self, queue: &Name) -> Shard {
        if self.writer.is_none() {
            return Shard(0);
        }
        self.make_shards(queue);
        let shards = self.shards.get(queue).map(Vec::as_slice).unwrap_or_default();
        let is_owned = |shard: &&Shard| self.writer.as_ref().is_some_and(|writer| writer.owned.contains(**shard));
        let owned: Vec<&Shard> = shards.iter().filter(is_owned).collect();
        let turn = self.runs.len();
        match (owned.is_empty(), shards.is_empty()) {
            (false, _) => *owned[turn % owned.len()],
            (true, false) => shards[turn % shards.len()],
            (true, true) => Shard(0),
        }
    }

    /// Returns the node that works at a new task of this queue: the one that writes, if it serves the queue.
    fn node_of(&self, queue: &Name) -> Option<NodeNo> {
        self.writer.as_ref().filter(|writer| writer.queues.contains(queue)).map(|writer| writer.node)
    }
}

/// No data survives the process, so no later process could read a note.
impl RunningNotes for MemoryStore {
    fn keeps_notes(&self) -> bool {
        true
    }

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

/// A store in memory lives in one process.
impl Nodes for MemoryStore {}

#[cfg(test)]
mod tests {
    crate::conformance_tests!(crate::MemoryStore::new());
}
