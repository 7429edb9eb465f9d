//! Several nodes in one thread, on one virtual time, over one store in memory: take-overs, stalls, lost and doubled notices
//! are exact.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_engine::{Engine, Options};
use dacapo_store::{Doing, MemoryCluster, MemoryNode, NodeRow, ReadRuns, Reading, RunNo, SharedStore};
use dacapo_sync::allow_blocking;

use crate::crash::Crash;
use crate::fake::Fakes;
use crate::ledger::AttemptCounts;
use crate::simulation::BEGIN;
use crate::virtual_host::{VirtualHost, World};
use crate::virtual_time::VirtualTime;

/// How long a lease runs.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often a node renews its lease.
pub const RENEWAL: Duration = Duration::from_secs(3);
/// How often a node looks for what notices may have missed.
pub const SLOW_POLL: Duration = Duration::from_secs(5);

/// The number of rounds of work without time passing after which a test is not expected to end.
const ROUNDS: usize = 10_000;

/// Nodes that share a store.
pub struct SimulatedNodes {
    cluster: Arc<MemoryCluster>,
    world: World,
    nodes: BTreeMap<&'static str, Node>,
    renews: Timestamp,
    looks: Timestamp,
}

struct Node {
    store: Arc<MemoryNode>,
    host: Arc<VirtualHost>,
    engine: Engine,
    /// Whether it does nothing, as a process that was stopped.
    is_stalled: bool,
    /// The fate of the notices for it.
    notices: NoticesFor,
}

/// The fate of the notices for a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoticesFor {
    /// They are delivered.
    #[default]
    Delivered,
    /// They are lost.
    Lost,
    /// They come twice.
    Doubled,
}

/// The nodes while one of them reads.
pub struct Meanwhile(Vec<(Weak<MemoryNode>, Weak<VirtualHost>)>);

impl Meanwhile {
    /// Waits for a future, while no time passes.
    #[track_caller]
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..ROUNDS {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
            self.round();
        }
        panic!("what is waited for does not come without time");
    }

    /// Does all that is to be done before a future has what it waits for.
    ///
    /// # Panics
    /// If it has that.
    #[track_caller]
    pub fn begin<T>(&self, future: &mut (impl Future<Output = T> + Unpin)) {
        let mut any = true;
        while any {
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "it waits for nothing");
            any = self.round();
        }
    }

    /// Does all work that is due.
    fn settle(&self) {
        while self.round() {}
    }

    /// Does one round of work. Returns whether there was any.
    fn round(&self) -> bool {
        let mut any = false;
        for (store, host) in &self.0 {
            let (Some(store), Some(host)) = (store.upgrade(), host.upgrade()) else { continue };
            any |= store.deliver();
            while host.step() {
                any = true;
            }
        }
        any
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.host.disconnect();
    }
}

impl Default for SimulatedNodes {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedNodes {
    /// Creates a store that has no node yet.
    pub fn new() -> Self {
        let time = VirtualTime::starting_at(BEGIN);
        let clock = time.clone();
        let cluster = MemoryCluster::new(LEASE, move || Duration::from_nanos(clock.now().0));
        let world = World::new(time.clone(), Fakes::on(time), None);
        let begin = BEGIN;
        Self { cluster, world, nodes: BTreeMap::new(), renews: begin.after(RENEWAL), looks: begin.after(SLOW_POLL) }
    }

    /// Starts a node.
    pub fn start(&mut self, name: &'static str, options: Options) {
        self.open(name, options, self.cluster.node(name));
    }

    /// Starts a node that keeps notes of what it runs, where the process before it died while it was running this.
    pub fn start_after_death(&mut self, name: &'static str, options: Options, running: &[Doing]) {
        let store = self.cluster.node(name);
        store.leave_notes(running);
        self.open(name, options, store);
    }

    fn open(&mut self, name: &'static str, options: Options, store: MemoryNode) {
        let store = Arc::new(store);
        let host = VirtualHost::new(self.world.clone(), Crash::never());
        let engine = Engine::open(store.clone(), host.clone(), options).expect("the store can be opened");
        let node = Node { store, host, engine, is_stalled: false, notices: NoticesFor::Delivered };
        assert!(self.nodes.insert(name, node).is_none(), "node {name} runs already");
        self.settle();
    }

    /// Kills a node: what it has in memory is gone, and its lease runs on.
    pub fn kill(&mut self, name: &'static str) {
        let node = self.nodes.remove(name).expect("the node runs");
        node.host.disconnect();
    }

    /// Stops a node, which hands over its shards.
    pub fn stop(&mut self, name: &'static str) {
        let node = self.nodes.remove(name).expect("the node runs");
        node.engine.stop();
        node.host.disconnect();
        self.renew();
    }

    /// Keeps a node from doing anything, or lets it go on.
    pub fn stall(&mut self, name: &'static str, is_stalled: bool) {
        self.nodes.get_mut(name).expect("the node runs").is_stalled = is_stalled;
    }

    /// Decides what becomes of the notices for a node.
    pub fn set_notices(&mut self, name: &'static str, notices: NoticesFor) {
        self.nodes.get_mut(name).expect("the node runs").notices = notices;
    }

    /// Holds back what a node's commits lead to in its memory, as if the thread that committed were slow, or lets it go on.
    pub fn hold_answers(&self, name: &'static str, holds: bool) {
        allow_blocking(|| self.nodes[name].store.hold_answers(holds));
    }

    /// Has something happen once a node's next read of this kind has read, and before the node gets that. It is done by other threads of
    /// the nodes, and ends before the node goes on.
    pub fn after_reading(
        &self,
        name: &'static str,
        reading: Reading,
        meanwhile: impl FnOnce(&Meanwhile) + Send + 'static,
    ) {
        let parts = |node: &Node| (Arc::downgrade(&node.store), Arc::downgrade(&node.host));
        let nodes = Meanwhile(self.nodes.values().map(parts).collect());
        self.nodes[name].store.after_reading(reading, move || {
            meanwhile(&nodes);
            nodes.settle();
        });
    }

    /// Returns the engine of a node.
    pub fn engine(&self, name: &'static str) -> &Engine {
        &self.nodes[name].engine
    }

    /// Returns the store as a node has it.
    pub fn store(&self, name: &'static str) -> &Arc<MemoryNode> {
        &self.nodes[name].store
    }

    /// Returns the node that owns a run, if one of those that run does.
    pub fn owner(&self, run: RunNo) -> Option<&'static str> {
        self.nodes.iter().find(|(_, node)| node.store.owns(run)).map(|(name, _)| *name)
    }

    /// Lists the nodes, as the store knows them.
    pub fn rows(&self) -> Vec<NodeRow> {
        let node = self.nodes.values().next().expect("a node runs");
        node.store.nodes().expect("the store is in memory")
    }

    /// Returns how many attempts there were on all nodes.
    pub fn attempts(&self) -> AttemptCounts {
        self.world.ledger.attempts()
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.world.time.now()
    }

    /// Returns the number of stuck runs.
    pub fn stuck(&self) -> u64 {
        let stuck = dacapo_store::Filter { stuck: true, ..Default::default() };
        let node = self.nodes.values().next().expect("a node runs");
        node.store.count(&stuck, u64::MAX).expect("the store is in memory")
    }

    fn live(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(|node| !node.is_stalled)
    }

    /// Does one round of work. Returns whether there was any.
    fn round(&self) -> bool {
        let mut any = false;
        for node in self.live() {
            match node.notices {
                NoticesFor::Delivered => {}
                NoticesFor::Lost => drop(node.store.lose_notices()),
                NoticesFor::Doubled => node.store.double_notices(),
            }
            any |= allow_blocking(|| node.store.deliver());
            while node.host.step() {
                any = true;
            }
            if node.host.next_wake().is_some_and(|wake| wake <= node.host.clock()) {
                node.host.move_to(node.host.clock());
                allow_blocking(|| node.engine.tick());
                any = true;
            }
        }
        any
    }

    /// Does all work that is due without time passing.
    pub fn settle(&self) {
        for _ in 0..ROUNDS {
            if !self.round() {
                return;
            }
        }
        panic!("the nodes find no rest");
    }

    fn renew(&self) {
        for node in self.live() {
            allow_blocking(|| node.store.renew());
        }
        // What one gave away, another notices.
        for node in self.live() {
            allow_blocking(|| node.store.renew());
        }
        self.settle();
    }

    /// Lets this much time pass, and does all work that is due meanwhile.
    pub fn advance(&mut self, time: Duration) {
        let until = self.now().after(time);
        self.settle();
        loop {
            let wakes = self.live().filter_map(|node| node.host.next_wake());
            let next = wakes.chain([self.renews, self.looks]).min().expect("a lease is renewed");
            if next > until {
                break;
            }
            self.move_to(next);
        }
        self.move_to(until);
    }

    fn move_to(&mut self, at: Timestamp) {
        self.world.time.move_to(at);
        if self.renews <= at {
            self.renews = at.after(RENEWAL);
            self.renew();
        }
        if self.looks <= at {
            self.looks = at.after(SLOW_POLL);
            for node in self.live() {
                allow_blocking(|| node.store.look());
            }
        }
        for node in self.live() {
            node.host.move_to(at);
            allow_blocking(|| node.engine.tick());
        }
        self.settle();
    }

    /// Waits for a future, while time passes if it must, but for no longer than an hour.
    #[track_caller]
    pub fn wait<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let end = self.now().after(Duration::from_secs(3_600));
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(value) = allow_blocking(|| future.as_mut().poll(&mut cx)) {
                return value;
            }
            if !self.round() {
                assert!(self.now() < end, "nothing is left to do, and what is waited for has not come");
                self.advance(Duration::from_millis(100));
            }
        }
    }
}
