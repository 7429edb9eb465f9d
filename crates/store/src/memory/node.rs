//! Several nodes over one store in memory, for tests: nothing happens by itself, and time is what the test says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use dacapo_core::{Name, Timestamp};
use dacapo_sync::{Mutex, MutexGuard, ranks};

use super::interruptions::Interruptions;
use super::members::{Delivery, Members, Node, gone};
use super::{MemoryStore, Tables, Writer};
use crate::{
    CallAnswered, Doing, Done, Filter, Looked, Member, NodeEvents, NodeNo, NodeRow, Nodes, Notice, OwnedShard,
    ReadMessages, ReadRuns, Recipient, Refused, RunNo, RunRow, Shard, Shards, SharedShards, SharedStore, StoreError,
    TaskNo, TaskRow, TimerRow, Write, Writes, Written, apply, balance,
};

type Result<T> = std::result::Result<T, StoreError>;

/// The shards of a queue.
const SHARDS: u16 = 4;

/// For how many leases a node takes no task again that it has declined.
const DECLINED: u32 = 3;

/// The clock by which leases run.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A store in memory that several nodes share.
pub struct MemoryCluster {
    pub(super) store: MemoryStore,
    members: Mutex<Members>,
    clock: Clock,
    lease: Duration,
}

/// A node of a [`MemoryCluster`]: what one process has open.
pub struct MemoryNode {
    pub(super) cluster: Arc<MemoryCluster>,
    name: Name,
    no: AtomicI64,
    pub(super) owned: SharedShards,
    joined: Mutex<Option<Joined>>,
    /// The tasks that the node takes only after this time, because it cannot work at them.
    declined: Mutex<BTreeMap<TaskNo, Duration>>,
    /// The answers to writes that wait until they are given. None: they are given at once.
    held: Mutex<Option<Vec<HeldAnswer>>>,
    /// The notes that the process before this one left. None: it keeps none.
    pub(super) left: Mutex<Option<Vec<Doing>>>,
    pub(super) interruptions: Interruptions,
}

type HeldAnswer = (Done, Result<Written>);

#[derive(Clone)]
struct Joined {
    queues: Vec<Name>,
    build: Name,
    events: Arc<dyn NodeEvents>,
}

impl MemoryCluster {
    /// Creates an empty store, whose nodes have leases of this length by this clock.
    pub fn new(lease: Duration, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Arc<Self> {
        let members = Mutex::new(ranks::MEMBERS, Members::default());
        Arc::new(Self { store: MemoryStore::new(), members, clock: Arc::new(clock), lease })
    }

    /// Opens the store for another process.
    pub fn node(self: &Arc<Self>, name: &'static str) -> MemoryNode {
        MemoryNode {
            cluster: self.clone(),
            name: Name::from_static(name),
            no: AtomicI64::new(0),
            owned: SharedShards::default(),
            joined: Mutex::new(ranks::NODE, None),
            declined: Mutex::new(ranks::NODE, BTreeMap::new()),
            held: Mutex::new(ranks::NODE, None),
            left: Mutex::new(ranks::STORE_NOTES, None),
            interruptions: Interruptions::default(),
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock()
    }

    /// Takes the tasks of these shards, or all of a node, from the nodes that work at them, but for those that go on.
    fn release_tasks(&self, is_released: impl Fn(&TaskRow) -> bool) {
        for task in self.store.tables().tasks.values_mut() {
            if is_released(task) {
                task.node = None;
            }
        }
    }
}

impl Tables {
    /// Makes the shards of a queue if it has none. Returns the shards, each with the queue.
    pub(super) fn make_shards(&mut self, queue: &Name) -> Vec<(Shard, Name)> {
        let first = self.shards.len() as u16 * SHARDS;
        let shards = self.shards.entry(queue.clone()).or_insert_with(|| (first..first + SHARDS).map(Shard).collect());
        shards.iter().map(|shard| (*shard, queue.clone())).collect()
    }
}

impl MemoryNode {
    /// Renews the lease, takes over the shards of nodes whose lease is over, and moves shards so that each node has its
    /// share. A process does this every few seconds.
    pub fn renew(&self) {
        let Some(joined) = self.joined.lock().clone() else { return };
        let now = (self.cluster.clock)();
        let me = self.node();
        let mut members = self.cluster.members();
        if !members.nodes.contains_key(&me) {
            drop(members);
            return self.join_again(&joined);
        }
        if let Some(node) = members.nodes.get_mut(&me) {
            node.lease_until = now + self.cluster.lease;
        }
        let dead: Vec<NodeNo> =
            members.nodes.iter().filter(|(_, node)| node.lease_until <= now).map(|(no, _)| *no).collect();
        let calls: Vec<CallAnswered> = dead.iter().flat_map(|node| members.remove(*node)).collect();
        let live: Vec<Member> =
            members.nodes.iter().map(|(no, node)| Member { no: *no, queues: node.queues.clone() }).collect();
        let shards: Vec<OwnedShard> = members
            .owners
            .iter()
            .map(|(shard, (queue, owner))| OwnedShard { shard: *shard, queue: queue.clone(), owner: *owner })
            .collect();
        let moves = balance(me, &live, &shards);
        for shard in &moves.take {
            members.owners.entry(*shard).and_modify(|(_, owner)| *owner = Some(me));
        }
        drop(members);
        self.cluster.release_tasks(|task| task.node.is_some_and(|node| dead.contains(&node)));
        gone(calls);
        self.give(&joined, &moves.give);
        self.notice(&joined);
    }

    /// Gives shards to other nodes.
    fn give(&self, joined: &Joined, given: &[(Shard, NodeNo)]) {
        let shards: Shards = given.iter().map(|(shard, _)| *shard).collect();
        if shards.is_empty() {
            return;
        }
        self.owned.remove(&shards);
        let kept = joined.events.giving(shards);
        self.cluster.release_tasks(|task| {
            task.node == Some(self.node()) && shards.has_run(task.run) && !kept.contains(&task.no)
        });
        let mut members = self.cluster.members();
        for (shard, to) in given {
            members.owners.entry(*shard).and_modify(|(_, owner)| *owner = Some(*to));
        }
        drop(members);
        joined.events.lost(shards, false);
    }

    /// Notices the shards that this node owns and did not know of.
    fn notice(&self, joined: &Joined) {
        let me = self.node();
        let owned: Shards = {
            let members = self.cluster.members();
            members.owners.iter().filter(|(_, (_, owner))| *owner == Some(me)).map(|(shard, _)| *shard).collect()
        };
        let gained = owned.without(&self.owned.get());
        if !gained.is_empty() {
            // What memory has of their runs is from before others played them.
            joined.events.lost(gained, false);
            self.owned.add(&gained);
            joined.events.gained(gained);
        }
    }

    fn join_again(&self, joined: &Joined) {
        let lost = self.owned.clear();
        joined.events.lost(lost, true);
        self.enter(joined);
        self.notice(joined);
    }

    fn enter(&self, joined: &Joined) {
        let lease_until = (self.cluster.clock)() + self.cluster.lease;
        let Joined { queues, build, .. } = joined.clone();
        let mut members = self.cluster.members();
        members.last += 1;
        let me = NodeNo(members.last);
        members.nodes.insert(me, Node { name: self.name.clone(), build, queues, lease_until });
        drop(members);
        self.no.store(me.0, Ordering::Release);
        let made: Vec<(Shard, Name)> = {
            let mut tables = self.cluster.store.tables();
            joined.queues.iter().flat_map(|queue| tables.make_shards(queue)).collect()
        };
        let mut members = self.cluster.members();
        for (shard, queue) in made {
            members.owners.entry(shard).or_insert((queue, None));
        }
    }

    /// Delivers notices and calls of other nodes. Returns whether there was any.
    pub fn deliver(&self) -> bool {
        let Some(joined) = self.joined.lock().clone() else { return false };
        let deliveries = self.cluster.members().deliveries.remove(&self.node()).unwrap_or_default();
        let any = !deliveries.is_empty();
        for delivery in deliveries {
            match delivery {
                Delivery::Notice(notice) => joined.events.notified(notice),
                Delivery::Call(request, answered) => {
                    joined.events.called(request, Box::new(move |answer| answered(Ok(answer))));
                }
            }
        }
        any
    }

    /// Loses the notices of other nodes that were not delivered. Returns how many they were.
    pub fn lose_notices(&self) -> usize {
        let mut members = self.cluster.members();
        let Some(deliveries) = members.deliveries.get_mut(&self.node()) else { return 0 };
        let before = deliveries.len();
        deliveries.retain(|delivery| matches!(delivery, Delivery::Call(..)));
        before - deliveries.len()
    }

    /// Has the notices of other nodes that were not delivered delivered twice.
    pub fn double_notices(&self) {
        let mut members = self.cluster.members();
        if let Some(deliveries) = members.deliveries.get_mut(&self.node()) {
            let again: Vec<Delivery> = deliveries
                .iter()
                .filter_map(|delivery| {
                    if let Delivery::Notice(notice) = delivery { Some(Delivery::Notice(notice.clone())) } else { None }
                })
                .collect();
            deliveries.extend(again);
        }
    }

    /// Has the node keep notes of what runs, and find these of the process before it.
    pub fn leave_notes(&self, left: &[Doing]) {
        *self.left.lock() = Some(left.to_vec());
    }

    /// Looks for what notices may have missed. A process does this every few seconds.
    pub fn look(&self) {
        let joined = self.joined.lock().clone();
        if let Some(joined) = joined {
            joined.events.look(self.owned.get());
        }
    }

    /// Holds the answers to this node's writes back, as a thread does that is slow after it has committed, or gives those that
    /// were held back and all that follow.
    pub fn hold_answers(&self, holds: bool) {
        let held = std::mem::replace(&mut *self.held.lock(), holds.then(Vec::new));
        held.into_iter().flatten().for_each(|(done, written)| done(written));
    }

    fn is_live(&self) -> bool {
        self.cluster.members().nodes.contains_key(&self.node())
    }

    /// Returns whether another node owns a run, so that it alone removes the run when that is old.
    pub(super) fn others_own(&self, run: RunNo) -> bool {
        let owner = self.cluster.members().owners.get(&run.shard()).and_then(|(_, owner)| *owner);
        owner.is_some_and(|owner| owner != self.node())
    }

    fn queues(&self) -> Vec<Name> {
        self.joined.lock().as_ref().map(|joined| joined.queues.clone()).unwrap_or_default()
    }
}

impl SharedStore for MemoryNode {
    fn join(&self, queues: &[Name], build: &Name, events: Arc<dyn NodeEvents>) -> Result<()> {
        let joined = Joined { queues: queues.to_vec(), build: build.clone(), events };
        *self.joined.lock() = Some(joined.clone());
        self.enter(&joined);
        joined.events.joined()?;
        self.renew();
        Ok(())
    }

    fn node(&self) -> NodeNo {
        NodeNo(self.no.load(Ordering::Acquire))
    }

    fn owns(&self, run: RunNo) -> bool {
        self.owned.has_run(run)
    }

    fn is_served(&self, queue: &str) -> bool {
        self.cluster.members().nodes.values().any(|node| node.queues.iter().any(|served| *served == *queue))
    }

    fn others_serve(&self, queue: &str) -> bool {
        let me = self.node();
        let members = self.cluster.members();
        let others = members.nodes.iter().filter(|(no, _)| **no != me);
        others.into_iter().any(|(_, node)| node.queues.iter().any(|served| *served == *queue))
    }

    fn other_builds(&self) -> Vec<Name> {
        let me = self.node();
        let members = self.cluster.members();
        members.nodes.iter().filter(|(no, _)| **no != me).map(|(_, node)| node.build.clone()).collect()
    }

    fn clock(&self) -> Result<Timestamp> {
        Ok(Timestamp((self.cluster.clock)().as_nanos() as u64))
    }

    fn notify(&self, to: Recipient, notice: Notice) {
        self.cluster.members().add(&to, || Delivery::Notice(notice.clone()));
    }

    fn call(&self, to: Recipient, request: Vec<u8>, answered: CallAnswered) {
        let mut members = self.cluster.members();
        let node = match to {
            Recipient::Node(node) => Some(node),
            Recipient::OwnerOf(run) => members.owners.get(&run.shard()).and_then(|(_, owner)| *owner),
            Recipient::Serving(_) => None,
        };
        match node.filter(|node| members.nodes.contains_key(node)) {
            Some(node) => members.deliveries.entry(node).or_default().push_back(Delivery::Call(request, answered)),
            None => {
                drop(members);
                answered(Err(Refused::NotOwner.into()));
            }
        }
    }

    fn confirm_lease(&self) -> Result<()> {
        let (me, now) = (self.node(), (self.cluster.clock)());
        let is_over = self.cluster.members().nodes.get(&me).is_none_or(|node| node.lease_until <= now);
        if is_over {
            self.renew();
        }
        Ok(())
    }

    fn stop_serving(&self) -> Result<()> {
        if let Some(joined) = &mut *self.joined.lock() {
            joined.queues.clear();
        }
        if let Some(node) = self.cluster.members().nodes.get_mut(&self.node()) {
            node.queues.clear();
        }
        self.renew();
        Ok(())
    }

    fn decline(&self, tasks: &[TaskNo]) -> Result<()> {
        let me = Some(self.node());
        self.cluster.release_tasks(|task| task.node == me && tasks.contains(&task.no));
        let until = (self.cluster.clock)() + self.cluster.lease * DECLINED;
        self.declined.lock().extend(tasks.iter().map(|task| (*task, until)));
        Ok(())
    }

    fn claim(&self, places: &[(Name, usize)]) -> Result<Vec<TaskRow>> {
        let mut claimed = Vec::new();
        if !self.is_live() {
            return Ok(claimed);
        }
        let now = (self.cluster.clock)();
        let declined = self.declined.lock().clone();
        let is_free = |task: &TaskRow| task.node.is_none() && declined.get(&task.no).is_none_or(|until| *until <= now);
        for (queue, free) in places {
            let mut tables = self.cluster.store.tables();
            let unheld = tables.tasks.values_mut().filter(|task| task.queue == *queue && is_free(task));
            for task in unheld.take(*free) {
                task.node = Some(self.node());
                claimed.push(task.clone());
            }
        }
        Ok(claimed)
    }

    fn tasks_in(&self, shards: &Shards, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>> {
        let me = self.node();
        let mut tables = self.cluster.store.tables();
        let is_mine = |task: &&mut TaskRow| {
            task.no.0 > above
                && shards.has_run(task.run)
                && queues.contains(&task.queue)
                && task.node.is_none_or(|node| node == me)
        };
        let mine = tables.tasks.values_mut().filter(is_mine).take(limit);
        Ok(mine
            .map(|task| {
                task.node = Some(me);
                task.clone()
            })
            .collect())
    }

    fn look(&self, shards: &Shards, runs: &[RunNo]) -> Result<Looked> {
        let (me, now) = (Some(self.node()), (self.cluster.clock)());
        let mut looked = Looked { unseen: self.unseen_in(shards)?, ..Looked::default() };
        let tables = self.cluster.store.tables();
        let has_begun = |row: &RunRow| row.turns > 0 || u128::from(row.started.0) <= now.as_nanos();
        looked.unseen.retain(|run| tables.runs.get(run).is_some_and(has_begun));
        for run in runs {
            match tables.runs.get(run) {
                Some(row) if row.status.is_open() => looked.stuck.extend(row.stuck.as_ref().map(|_| *run)),
                Some(_) | None => looked.ended.push(*run),
            }
        }
        looked.tasks = tables.tasks.values().filter(|task| task.node == me).map(|task| task.no).collect();
        Ok(looked)
    }

    fn unseen_in(&self, shards: &Shards) -> Result<Vec<RunNo>> {
        let runs = self.cluster.store.with_unseen_messages(usize::MAX)?;
        Ok(runs.into_iter().filter(|run| shards.has_run(*run)).collect())
    }

    fn stuck_in(&self, shards: &Shards) -> Result<Vec<RunRow>> {
        let stuck = Filter { stuck: true, ..Filter::default() };
        let rows = self.cluster.store.list(&stuck, None, usize::MAX)?;
        Ok(rows.into_iter().filter(|row| shards.has_run(row.no)).collect())
    }

    fn timers_of(&self, run: RunNo) -> Result<Vec<TimerRow>> {
        Ok(self.cluster.store.tables().timers.keys().filter(|timer| timer.run == run).copied().collect())
    }

    fn nodes(&self) -> Result<Vec<NodeRow>> {
        let now = (self.cluster.clock)();
        let members = self.cluster.members();
        let owned = |node: NodeNo| members.owners.values().filter(|(_, owner)| *owner == Some(node)).count();
        let row = |(no, node): (&NodeNo, &Node)| NodeRow {
            no: *no,
            name: node.name.clone(),
            build: node.build.clone(),
            queues: node.queues.clone(),
            shards: owned(*no),
            lease: node.lease_until.saturating_sub(now),
        };
        Ok(members.nodes.iter().map(row).collect())
    }
}

impl Nodes for MemoryNode {
    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }
}

impl Writes for MemoryNode {
    fn submit(&self, write: Write, done: Done) {
        let is_live = self.is_live();
        if !is_live {
            // Like a node on a database, it learns by its first write that the others took it for dead.
            self.owned.clear();
        }
        let queues = self.queues();
        let written = {
            let mut tables = self.cluster.store.tables();
            let owns = |run| is_live && self.owned.has_run(run);
            tables.writer = Some(Writer { node: self.node(), owned: self.owned.get(), queues });
            let written = match write.owned_run() {
                // A closed run has no turns any more: any node may begin another from it.
                Some(run) if tables.runs.get(&run).is_some_and(|row| row.status.is_open()) && !owns(run) => {
                    Err(Refused::NotOwner.into())
                }
                _ => apply(&mut *tables, &write),
            };
            tables.writer = None;
            written
        };
        let mut held = self.held.lock();
        match &mut *held {
            Some(held) => held.push((done, written)),
            None => {
                drop(held);
                done(written);
            }
        }
    }

    fn close(&self) -> Result<()> {
        if self.joined.lock().take().is_none() {
            return Ok(());
        }
        let me = self.node();
        self.owned.clear();
        let calls = self.cluster.members().remove(me);
        self.cluster.release_tasks(|task| task.node == Some(me));
        gone(calls);
        Ok(())
    }
}
