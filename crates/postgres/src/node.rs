//! The node: this process as the database knows it. Its row is the fence of all its commits, and keeps the number of the
//! last one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use dacapo_core::{Name, Timestamp};
use dacapo_store::{NodeNo, NodeRow, Recipient, RunNo, Shard, Shards, SharedShards, TaskNo};
use dacapo_sync::{Condvar, Mutex, ranks};

use crate::meters::Meters;

/// The knowledge that all threads of a node share: its number, its shards, and the other nodes.
pub(crate) struct Node {
    no: AtomicI64,
    process: AtomicI64,
    pub(crate) owned: SharedShards,
    view: Mutex<View>,
    lease: Mutex<Lease>,
    /// Notified when the lease was renewed, and when the store closes.
    renewed: Condvar,
    /// The tasks that this node takes only after this time, because it cannot work at them.
    declined: Mutex<BTreeMap<TaskNo, Instant>>,
    pub(crate) meters: Meters,
}

/// A moment by a clock that goes on while the machine is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

/// The lease, as this node knows it.
#[derive(Default)]
struct Lease {
    /// Until when the others leave this node its shards, counted from before it asked for that.
    until: Moment,
    /// When the database was asked for the time last, and the time that it showed.
    seen: Option<(Moment, Timestamp)>,
}

impl Moment {
    #[cfg(target_os = "linux")]
    pub(crate) fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Self(Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now() -> Self {
        static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        Self(BEGAN.elapsed())
    }
}

/// The nodes and shards as they were read last.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// The life of this node in which it saw this: it has another after the others took it for dead.
    pub(crate) life: u64,
    pub(crate) nodes: Vec<SeenNode>,
    /// The shards of each queue.
    pub(crate) shards: BTreeMap<Name, Vec<Shard>>,
    pub(crate) owners: BTreeMap<Shard, NodeNo>,
    /// The queues that this node serves.
    pub(crate) served: Vec<Name>,
}

/// A live node, and which of its processes it is.
#[derive(Clone)]
pub(crate) struct SeenNode {
    pub(crate) row: NodeRow,
    pub(crate) process: i64,
}

impl View {
    /// Returns which process a live node is.
    pub(crate) fn process_of(&self, node: NodeNo) -> Option<i64> {
        self.nodes.iter().find(|seen| seen.row.no == node).map(|seen| seen.process)
    }
}

impl Node {
    pub(crate) fn new() -> Arc<Self> {
        let view = Mutex::new(ranks::MEMBERS, View::default());
        let (no, process, owned) = (AtomicI64::new(0), AtomicI64::new(0), SharedShards::default());
        let lease = Mutex::new(ranks::MEMBERS, Lease::default());
        let declined = Mutex::new(ranks::MEMBERS, BTreeMap::new());
        Arc::new(Self { no, process, owned, view, lease, renewed: Condvar::new(), declined, meters: Meters::new() })
    }

    /// Notes that the lease was renewed by a statement that was sent at this moment and saw this time of the database.
    pub(crate) fn set_lease(&self, sent: Moment, lease: Duration, time: Timestamp) {
        let now = Moment::now();
        let middle = Moment((sent.0 + now.0) / 2);
        let next = Lease { until: Moment(sent.0 + lease), seen: Some((middle, time)) };
        let before = std::mem::replace(&mut *self.lease.lock(), next);
        self.renewed.notify_all();
        // A node that joins has its whole lease before it.
        let left = before.seen.map_or(lease, |_| before.until.0.saturating_sub(now.0));
        self.meters.lease_left.set(left.as_secs_f64());
    }

    /// Returns whether the lease runs, so that no other node has taken a run of this one.
    pub(crate) fn has_lease(&self) -> bool {
        Moment::now() < self.lease.lock().until
    }

    /// Waits until the lease runs. Returns false if the store closes before.
    pub(crate) fn wait_for_lease(&self, is_closing: impl Fn() -> bool) -> bool {
        let mut lease = self.lease.lock();
        while Moment::now() >= lease.until {
            if is_closing() {
                return false;
            }
            self.renewed.wait(&mut lease);
        }
        true
    }

    /// Wakes the threads that wait for the lease, because the store closes.
    pub(crate) fn stop_waiting(&self) {
        // Under the lock: a thread that has seen the store open is waiting by now.
        let _lease = self.lease.lock();
        self.renewed.notify_all();
    }

    /// Returns the time of the database, as far as it is known from the last renewal. None if that is long ago.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        let (now, lease) = (Moment::now(), self.lease.lock());
        let (seen, time) = lease.seen.filter(|_| now < lease.until)?;
        Some(time.after(now.0.saturating_sub(seen.0)))
    }

    /// Notes tasks that this node does not take for so long.
    pub(crate) fn decline(&self, tasks: &[TaskNo], time: Duration) {
        let now = Instant::now();
        let mut declined = self.declined.lock();
        declined.retain(|_, until| *until > now);
        declined.extend(tasks.iter().map(|task| (*task, now + time)));
    }

    /// Returns the tasks that this node does not take now.
    pub(crate) fn declined(&self) -> Vec<i64> {
        let now = Instant::now();
        self.declined.lock().iter().filter(|(_, until)| **until > now).map(|(task, _)| task.0).collect()
    }

    pub(crate) fn no(&self) -> NodeNo {
        NodeNo(self.no.load(Ordering::Acquire))
    }

    /// Returns the random number of this process: another that takes the node's name has another.
    pub(crate) fn process(&self) -> i64 {
        self.process.load(Ordering::Acquire)
    }

    pub(crate) fn set_no(&self, no: NodeNo, process: i64) {
        self.process.store(process, Ordering::Release);
        self.no.store(no.0, Ordering::Release);
    }

    /// Changes what the node knows of the others.
    pub(crate) fn see<R>(&self, change: impl FnOnce(&mut View) -> R) -> R {
        change(&mut self.view.lock())
    }

    /// Returns the nodes to which a notice or a call goes.
    pub(crate) fn find(&self, to: &Recipient) -> Vec<NodeNo> {
        self.see(|view| match to {
            Recipient::Node(node) => vec![*node],
            Recipient::OwnerOf(run) => view.owners.get(&run.shard()).copied().into_iter().collect(),
            Recipient::Serving(queue) => {
                view.nodes.iter().filter(|node| node.row.queues.contains(queue)).map(|node| node.row.no).collect()
            }
        })
    }

    /// Returns the shard in which a run of this queue starts: one of these, which are this node's, where it owns one of that
    /// queue. None if the queue has no shard yet.
    pub(crate) fn shard_of(&self, owned: &Shards, queue: &Name, turn: usize) -> Option<Shard> {
        self.see(|view| {
            let shards = view.shards.get(queue)?;
            let mine: Vec<Shard> = shards.iter().filter(|shard| owned.contains(**shard)).copied().collect();
            let from = if mine.is_empty() { shards } else { &mine };
            from.get(turn % from.len().max(1)).copied()
        })
    }

    /// Returns whether one of these shards, which are this node's, is of a queue, so that runs of it can start here with their
    /// first turn.
    pub(crate) fn owns_shard_of(&self, owned: &Shards, queue: &Name) -> bool {
        self.see(|view| view.shards.get(queue).is_some_and(|shards| shards.iter().any(|shard| owned.contains(*shard))))
    }

    /// Returns the shards that other nodes own.
    pub(crate) fn foreign(&self) -> Shards {
        let me = self.no();
        self.see(|view| view.owners.iter().filter(|(_, owner)| **owner != me).map(|(shard, _)| *shard).collect())
    }

    /// Returns whether this node serves a queue.
    pub(crate) fn serves(&self, queue: &Name) -> bool {
        self.see(|view| view.served.contains(queue))
    }

    pub(crate) fn owns(&self, run: RunNo) -> bool {
        self.owned.has_run(run)
    }
}
