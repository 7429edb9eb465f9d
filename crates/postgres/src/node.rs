//! The node: this process as the database knows it. Its row is the fence of all its commits, and keeps the number of the
//! last one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use dacapo_core::Name;
use dacapo_store::{NodeNo, NodeRow, Recipient, RunNo, Shard, Shards, SharedShards};
use dacapo_sync::{Mutex, ranks};

/// The knowledge that all threads of a node share: its number, its shards, and the other nodes.
pub(crate) struct Node {
    no: AtomicI64,
    pub(crate) owned: SharedShards,
    view: Mutex<View>,
}

/// The nodes and shards as they were read last.
#[derive(Clone, Default)]
pub(crate) struct View {
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
    pub(crate) incarnation: i64,
}

impl Node {
    pub(crate) fn new() -> Arc<Self> {
        let view = Mutex::new(ranks::MEMBERS, View::default());
        Arc::new(Self { no: AtomicI64::new(0), owned: SharedShards::default(), view })
    }

    pub(crate) fn no(&self) -> NodeNo {
        NodeNo(self.no.load(Ordering::Acquire))
    }

    pub(crate) fn set_no(&self, no: NodeNo) {
        self.no.store(no.0, Ordering::Release);
    }

    /// Changes what the node knows of the others.
    pub(crate) fn see<R>(&self, change: impl FnOnce(&mut View) -> R) -> R {
        change(&mut self.view.lock())
    }

    /// Returns the nodes that something is told.
    pub(crate) fn find(&self, to: &Recipient) -> Vec<NodeNo> {
        self.see(|view| match to {
            Recipient::Node(node) => vec![*node],
            Recipient::OwnerOf(run) => view.owners.get(&run.shard()).copied().into_iter().collect(),
            Recipient::Serving(queue) => {
                view.nodes.iter().filter(|node| node.row.queues.contains(queue)).map(|node| node.row.no).collect()
            }
        })
    }

    /// Returns the shard in which a run of this queue starts: one of this node's where it owns one of that queue. None if
    /// the queue has no shard yet.
    pub(crate) fn shard_of(&self, queue: &Name, turn: usize) -> Option<Shard> {
        let owned = self.owned.get();
        self.see(|view| {
            let shards = view.shards.get(queue)?;
            let mine: Vec<Shard> = shards.iter().filter(|shard| owned.contains(**shard)).copied().collect();
            let from = if mine.is_empty() { shards } else { &mine };
            from.get(turn % from.len().max(1)).copied()
        })
    }

    /// Returns whether this node owns a shard of a queue, so that runs of it can start here with their first turn.
    pub(crate) fn owns_shard_of(&self, queue: &Name) -> bool {
        let owned = self.owned.get();
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
