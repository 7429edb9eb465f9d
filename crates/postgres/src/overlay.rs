//! The rows of a store as a group of writes sees them: the facts that were read, and over them what the group has
//! changed so far.
//!
//! A fact that is missing is noted and ends the write with an error. The group is then applied anew, over all facts.

mod rows;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use dacapo_core::Name;
use dacapo_store::{MessageNo, RunNo, RunRow, Shard, Shards, StoreError};

use crate::changes::{Changes, Extent, RunChange};
use crate::facts::{Facts, MessageFact};
use crate::needs::Needs;
use crate::node::Node;

type Result<T> = std::result::Result<T, StoreError>;

/// Gives numbers to new tasks.
pub(crate) trait TaskNumbers {
    /// Returns the next number. None if more must be drawn first.
    fn next(&mut self) -> Option<i64>;
}

pub(crate) struct Overlay<'f> {
    facts: &'f Facts,
    node: &'f Node,
    /// The shards that this node owns, as they were when the group began.
    owned: Shards,
    tasks: &'f mut dyn TaskNumbers,
    pub(crate) changes: Changes,
    /// The rows that have to be read before the group can be applied.
    pub(crate) missing: Needs,
    /// Queues whose shards have to be made first.
    pub(crate) new_queues: BTreeSet<Name>,
    /// Whether numbers for tasks have to be drawn first.
    pub(crate) lacks_task_numbers: bool,
    /// How many of the new numbers are used.
    used: usize,
    open: BTreeMap<Name, Option<RunNo>>,
    last: BTreeMap<Name, RunNo>,
    requests: BTreeMap<Name, RunNo>,
    run_ids: BTreeMap<Name, RunNo>,
    /// Children that got their parent in this group.
    children: BTreeMap<RunNo, Vec<RunNo>>,
    /// Messages of this group by key.
    keys: BTreeMap<(RunNo, Name), MessageNo>,
    /// Messages that this group took, and that no turn had taken before.
    seen: HashSet<MessageNo>,
    /// How many messages each run got and lost in this group that no turn has taken.
    unseen: HashMap<RunNo, isize>,
}

/// The error that ends a write which needs more facts. It never reaches a caller.
fn incomplete<T>() -> Result<T> {
    Err(StoreError::Unavailable("a fact has to be read first".to_owned()))
}

impl<'f> Overlay<'f> {
    pub(crate) fn new(facts: &'f Facts, node: &'f Node, owned: Shards, tasks: &'f mut dyn TaskNumbers) -> Self {
        Self {
            facts,
            node,
            owned,
            new_queues: BTreeSet::new(),
            tasks,
            changes: Changes::default(),
            missing: Needs::default(),
            lacks_task_numbers: false,
            used: 0,
            open: BTreeMap::new(),
            last: BTreeMap::new(),
            requests: BTreeMap::new(),
            run_ids: BTreeMap::new(),
            children: BTreeMap::new(),
            keys: BTreeMap::new(),
            seen: HashSet::new(),
            unseen: HashMap::new(),
        }
    }

    /// Returns whether all facts were there.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty() && !self.lacks_task_numbers && self.new_queues.is_empty()
    }

    fn number(&mut self) -> Result<i64> {
        self.used += 1;
        match self.facts.numbers.get(self.used - 1) {
            Some(number) => Ok(*number),
            None => {
                self.missing.numbers += 1;
                // The write goes on, so that all that it lacks is found at once.
                Ok(i64::MAX >> (Shard::BITS + 1))
            }
        }
    }

    /// Returns the number of a new run of a queue.
    fn run_number(&mut self, queue: &Name) -> Result<RunNo> {
        let number = self.number()?;
        let shard = self.node.shard_of(&self.owned, queue, number as usize).unwrap_or_else(|| {
            self.new_queues.insert(queue.clone());
            Shard(0)
        });
        Ok(RunNo::new(number, shard))
    }

    fn row(&mut self, no: RunNo) -> Result<Option<&RunRow>> {
        if self.changes.deleted_runs.contains(&no) {
            return Ok(None);
        }
        if self.changes.runs.contains_key(&no) {
            return Ok(self.changes.runs.get(&no).map(|change| &change.row));
        }
        if let Some(row) = self.facts.runs.get(&no) {
            return Ok(Some(row));
        }
        if self.facts.asked.runs.contains(&no) {
            return Ok(None);
        }
        self.missing.runs.insert(no);
        incomplete()
    }

    /// Changes a run, if it is there.
    fn change(&mut self, no: RunNo, extent: Extent, change: impl FnOnce(&mut RunRow)) -> Result<()> {
        let is_changed = self.changes.runs.contains_key(&no);
        let Some(row) = self.row(no)? else { return Ok(()) };
        if !is_changed {
            let row = row.clone();
            self.changes.runs.insert(no, RunChange::of(row));
        }
        if let Some(run) = self.changes.runs.get_mut(&no) {
            run.extent = run.extent.max(extent);
            change(&mut run.row);
        }
        Ok(())
    }

    fn mark(&mut self, no: RunNo, mark: impl FnOnce(&mut RunChange)) {
        if let Some(change) = self.changes.runs.get_mut(&no) {
            mark(change);
        }
    }

    fn is_new(&self, run: RunNo) -> bool {
        self.changes.runs.get(&run).is_some_and(|run| run.extent == Extent::New)
    }

    fn add_run(&mut self, row: RunRow, request: Option<Name>) {
        let no = row.no;
        if row.status.is_open() {
            self.open.insert(row.workflow_id.clone(), Some(no));
        }
        let last = self.last.entry(row.workflow_id.clone()).or_insert(no);
        *last = (*last).max(no);
        if let Some(request) = &request {
            self.requests.insert(request.clone(), no);
        }
        self.run_ids.insert(row.run_id.clone(), no);
        if let Some(parent) = &row.parent {
            self.children.entry(parent.run).or_default().push(no);
        }
        self.changes.runs.insert(no, RunChange { request, extent: Extent::New, ..RunChange::of(row) });
    }

    /// Returns the message of a run with this key, as it was before the group.
    fn stored(&mut self, run: RunNo, key: &Name) -> Result<Option<MessageFact>> {
        let place = (run, key.clone());
        if let Some(fact) = self.facts.keys.get(&place) {
            return Ok(Some(*fact));
        }
        if self.is_new(run) || self.facts.asked.keys.contains(&place) || self.facts.parent_keys.contains(&place) {
            return Ok(None);
        }
        let id = self.row(run)?.map(|row| row.workflow_id.clone());
        let is_open_before = |id: &Name| self.facts.open.get(id) == Some(&run);
        if id.is_some_and(|id| is_open_before(&id) && self.facts.asked.keys_of_ids.contains(&(id, key.clone()))) {
            return Ok(None);
        }
        self.missing.keys.insert(place);
        incomplete()
    }

    /// Returns what is known of a stored message. None: there is no such message.
    fn message(&mut self, no: MessageNo) -> Result<Option<MessageFact>> {
        if let Some(fact) = self.facts.messages.get(&no) {
            return Ok(Some(*fact));
        }
        if self.facts.asked.messages.contains(&no) {
            return Ok(None);
        }
        self.missing.messages.insert(no);
        incomplete()
    }
}
