//! The nodes with which the suite of several nodes plays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::SharedStore;

/// A store that several nodes share, for [`conformance_tests_of_nodes!`](crate::conformance_tests_of_nodes). Each test
/// gets one of its own.
pub trait Cluster: Sync {
    /// Opens the store as a process of its own does, for a node of this name. The suite has it join the others.
    fn open(&self, name: &'static str) -> Arc<dyn Store>;

    /// Lets a small part of a lease pass. Every node but the silent ones renews its lease and looks at the others, or
    /// has the time to do so on threads of its own.
    fn pass(&self);

    /// Lets a whole lease pass, and a little more.
    fn pass_lease(&self);

    /// Keeps a node from the store, as when its process is stopped or its network is gone: it renews no lease, and its
    /// writes are refused, or wait.
    fn silence(&self, name: &'static str);

    /// Lets a silent node reach the store again.
    fn resume(&self, name: &'static str);

    /// Calls `act`. Where the store is reached over a network, the connection of this node is cut again and again
    /// meanwhile, so that the answers to some commits are lost, and `act` is called as often as that needs.
    fn cut_answers(&self, name: &'static str, act: &mut dyn FnMut()) {
        let _ = name;
        act();
    }
}

/// Plays a rule of several nodes.
pub fn clustered(cluster: &impl Cluster, rule: fn(&dyn Cluster)) {
    rule(cluster);
}

/// Counts what happened to the shards of a node.
#[derive(Default)]
struct Moves {
    gained: AtomicUsize,
    lost_all: AtomicUsize,
}

impl NodeEvents for Moves {
    fn gained(&self, _: Shards) {
        self.gained.fetch_add(1, Ordering::Relaxed);
    }

    fn giving(&self, _: Shards) -> Vec<TaskNo> {
        Vec::new()
    }

    fn lost(&self, _: Shards, all: bool) {
        self.lost_all.fetch_add(usize::from(all), Ordering::Relaxed);
    }

    fn notified(&self, _: Notice) {}

    fn called(&self, _: Vec<u8>, _: Box<dyn FnOnce(Vec<u8>) + Send>) {}

    fn look(&self, _: Shards) {}
}

/// A node that has joined.
pub(super) struct TestNode {
    pub(super) store: Arc<dyn Store>,
    moves: Arc<Moves>,
}

impl TestNode {
    /// Joins a node that serves a queue.
    pub(super) fn join(cluster: &dyn Cluster, name: &'static str, queue: &'static str) -> Self {
        let (store, moves) = (cluster.open(name), Arc::new(Moves::default()));
        let shared = store.shared().expect("several nodes can share it");
        shared.join(&[queue.into()], &"test".into(), moves.clone()).expect("a node can join");
        Self { store, moves }
    }

    pub(super) fn shared(&self) -> &dyn SharedStore {
        self.store.shared().expect("several nodes can share it")
    }

    pub(super) fn owns(&self, run: RunNo) -> bool {
        self.shared().owns(run)
    }

    /// Returns how often the node has got shards.
    pub(super) fn gains(&self) -> usize {
        self.moves.gained.load(Ordering::Relaxed)
    }

    /// Returns how often the node learnt that it has lost everything.
    pub(super) fn losses_of_all(&self) -> usize {
        self.moves.lost_all.load(Ordering::Relaxed)
    }

    /// Starts as many runs as spread over all shards of a queue.
    pub(super) fn start_many(&self) -> Vec<RunNo> {
        (0..32).map(|number| start(&*self.store, order(number)).expect("the id is free").run).collect()
    }

    /// Begins a write, which may have to wait.
    pub(super) fn submit(&self, write: Write) -> mpsc::Receiver<Result<Written, StoreError>> {
        let (told, answer) = mpsc::channel();
        let store = self.store.clone();
        thread::spawn(move || store.submit(write, Box::new(move |written| drop(told.send(written)))));
        answer
    }
}

/// Returns a turn of a run that was taken by no epoch.
pub(super) fn plain_turn(run: RunNo, number: u64) -> TurnWrite {
    TurnWrite { epoch: Epoch::default(), ..turn(run, number) }
}

pub(super) fn as_write(turn: TurnWrite) -> Write {
    Write::Turn(Box::new(turn))
}

/// Lets time pass until something holds.
#[track_caller]
pub(super) fn until(cluster: &dyn Cluster, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "it never came to this: {what}");
        cluster.pass();
    }
}

/// Lets time pass until each of these runs has an owner, and each node owns some. No run has two owners meanwhile.
#[track_caller]
pub(super) fn settle(cluster: &dyn Cluster, nodes: &[&TestNode], runs: &[RunNo]) {
    until(cluster, "each run has an owner, and each node owns some", || {
        let owners = |run: &RunNo| nodes.iter().filter(|node| node.owns(*run)).count();
        let counts: Vec<usize> = runs.iter().map(owners).collect();
        assert!(counts.iter().all(|count| *count <= 1), "a run has two owners: {counts:?}");
        counts.iter().all(|count| *count == 1) && nodes.iter().all(|node| runs.iter().any(|run| node.owns(*run)))
    });
}

/// Returns a run that this node owns.
pub(super) fn one_of(node: &TestNode, runs: &[RunNo]) -> RunNo {
    *runs.iter().find(|run| node.owns(**run)).expect("the node owns some of the runs")
}
