//! Reading a store in memory as one of its nodes.

use std::ops::ControlFlow;
use std::path::Path;

use dacapo_core::{AttributeValue, Name, Timestamp};

use super::interruptions::Reading;
use super::node::MemoryNode;
use crate::{
    Belongings, Doing, Filter, ListPlace, MessageRow, NoteSlot, ReadAlong, ReadMessages, ReadRuns, ReadTasks,
    ReadTimers, ReadTurns, RunNo, RunRow, RunningNotes, StoreError, StoredRun, TaskNo, TaskRow, TimerRow, Upkeep,
};

type Result<T> = std::result::Result<T, StoreError>;

impl MemoryNode {
    /// Has something happen once this node's next read of this kind has read, and before the reader gets it, as if the reading
    /// thread were slow.
    pub fn after_reading(&self, reading: Reading, meanwhile: impl FnOnce() + Send + 'static) {
        self.interruptions.add(reading, Box::new(meanwhile));
    }
}

impl ReadTimers for MemoryNode {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        let rows = self.cluster.store.due(until, usize::MAX)?;
        Ok(rows.into_iter().filter(|timer| self.owned.has_run(timer.run)).take(limit).collect())
    }

    fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(self.due(Timestamp(u64::MAX), 1)?.first().map(|timer| timer.due))
    }
}

impl ReadRuns for MemoryNode {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>> {
        ReadRuns::run(&self.cluster.store, no)
    }

    /// Reads ahead as a store over a network does, so that tests of several nodes meet what is old by then.
    fn load(&self, no: RunNo) -> Result<Option<StoredRun>> {
        let store = &self.cluster.store;
        let Some(row) = ReadRuns::run(store, no)? else { return Ok(None) };
        let unseen = Some(store.unseen(no)?).filter(|unseen| unseen.len() <= ReadAlong::MOST);
        let along = ReadAlong { records: store.records(no, 0, 0)?, unseen };
        self.interruptions.interrupt(Reading::Load);
        Ok(Some(StoredRun { along: row.status.is_open().then_some(along), row }))
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>> {
        self.cluster.store.find(workflow_id, run_id)
    }

    fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunRow>> {
        self.cluster.store.list(filter, after, limit)
    }

    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        self.cluster.store.oldest(filter, after, limit)
    }

    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>> {
        self.cluster.store.numbers(before, limit)
    }

    fn belongings(&self, run: RunNo) -> Result<Belongings> {
        self.cluster.store.belongings(run)
    }

    fn attributes(&self, run: RunNo) -> Result<Vec<(Name, AttributeValue)>> {
        self.cluster.store.attributes(run)
    }

    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>> {
        self.cluster.store.runs_with_crash_count()
    }

    fn closed_before(&self, moment: Timestamp, limit: usize) -> Result<Vec<RunNo>> {
        let mut runs = self.cluster.store.closed_before(moment, usize::MAX)?;
        runs.retain(|run| !self.others_own(*run));
        runs.truncate(limit);
        Ok(runs)
    }

    fn has_remains(&self) -> Result<bool> {
        let garbage = self.cluster.store.tables().garbage.clone();
        Ok(garbage.into_iter().any(|run| !self.others_own(run)))
    }

    fn count(&self, filter: &Filter, most: u64) -> Result<u64> {
        self.cluster.store.count(filter, most)
    }

    fn workflows(&self) -> Result<Vec<Name>> {
        self.cluster.store.workflows()
    }
}

impl ReadTurns for MemoryNode {
    fn turns(&self, run: RunNo, from: u64, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()> {
        self.cluster.store.turns(run, from, show)
    }
}

impl ReadMessages for MemoryNode {
    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>> {
        let unseen = self.cluster.store.unseen(run);
        self.interruptions.interrupt(Reading::Unseen);
        unseen
    }

    fn count_unseen(&self, run: RunNo) -> Result<usize> {
        self.cluster.store.count_unseen(run)
    }

    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>> {
        self.cluster.store.message(run, key)
    }

    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>> {
        self.cluster.store.asked(chain, request)
    }

    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>> {
        self.cluster.store.with_unseen_messages(limit)
    }
}

impl ReadTasks for MemoryNode {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>> {
        self.cluster.store.tasks(queues, above, limit)
    }

    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>> {
        self.cluster.store.task(no)
    }

    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>> {
        self.cluster.store.tasks_of(run)
    }
}

/// No data survives the process, so what it left is what a test says.
impl RunningNotes for MemoryNode {
    fn keeps_notes(&self) -> bool {
        self.left.lock().is_some()
    }

    fn began(&self, _: Doing) -> Option<NoteSlot> {
        None
    }

    fn ended(&self, _: NoteSlot) {}

    fn left(&self) -> Vec<Doing> {
        self.left.lock().clone().unwrap_or_default()
    }

    fn forget_left(&self) {
        if let Some(left) = &mut *self.left.lock() {
            left.clear();
        }
    }
}

impl Upkeep for MemoryNode {
    fn back_up(&self, to: &Path) -> Result<()> {
        self.cluster.store.back_up(to)
    }

    fn has_backup(&self) -> bool {
        false
    }

    fn problems(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
