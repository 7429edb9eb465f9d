//! The suite of several nodes, in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dacapo_sync::{Mutex, ranks};

use crate::conformance::nodes::Cluster;
use crate::{MemoryCluster, MemoryNode, Store};

const LEASE: Duration = Duration::from_secs(10);

/// Nodes that renew their leases when the suite lets time pass.
struct Nodes {
    cluster: Arc<MemoryCluster>,
    seconds: Arc<AtomicU64>,
    nodes: Mutex<Vec<(&'static str, Arc<MemoryNode>)>>,
    silent: Mutex<BTreeSet<&'static str>>,
}

impl Nodes {
    fn new() -> Self {
        let seconds = Arc::new(AtomicU64::new(0));
        let clock = seconds.clone();
        Self {
            cluster: MemoryCluster::new(LEASE, move || Duration::from_secs(clock.load(Ordering::Relaxed))),
            seconds,
            nodes: Mutex::new(ranks::NODE, Vec::new()),
            silent: Mutex::new(ranks::MEMBERS, BTreeSet::new()),
        }
    }
}

impl Cluster for Nodes {
    fn open(&self, name: &'static str) -> Arc<dyn Store> {
        let node = Arc::new(self.cluster.node(name));
        self.nodes.lock().push((name, node.clone()));
        node
    }

    fn pass(&self) {
        self.seconds.fetch_add(2, Ordering::Relaxed);
        let nodes = self.nodes.lock().clone();
        let silent = self.silent.lock().clone();
        for (_, node) in nodes.iter().filter(|(name, _)| !silent.contains(name)) {
            node.renew();
            node.deliver();
            node.look();
        }
    }

    fn pass_lease(&self) {
        self.seconds.fetch_add(LEASE.as_secs() + 1, Ordering::Relaxed);
    }

    fn silence(&self, name: &'static str) {
        self.silent.lock().insert(name);
    }

    fn resume(&self, name: &'static str) {
        self.silent.lock().remove(name);
    }
}

crate::conformance_tests_of_nodes!(Nodes::new());
