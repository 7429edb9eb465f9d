//! What this node sends to others: notices and calls wait here for the thread that sends them (`channel.rs`).

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dacapo_store::{CallAnswered, NodeNo, Notice, Recipient, Refused, StoreError};
use dacapo_sync::{Mutex, ranks};
use tokio::sync::Notify;

use crate::node::Node;
use crate::notification::Entry;

/// An item that waits to be sent.
pub(crate) enum Item {
    Notify(NodeNo, Entry),
    Call { id: i64, node: NodeNo, request: Vec<u8> },
    Answer { id: i64, answer: Vec<u8> },
    TakeCalls,
    TakeAnswers,
    Forget(Vec<i64>),
}

/// The notices and calls that wait to be sent, and the calls that wait for an answer.
pub(crate) struct Outbox {
    node: Arc<Node>,
    items: Mutex<Vec<Item>>,
    wake: Notify,
    /// Calls that wait for an answer: the node that was called, and which of its processes.
    waiting: Mutex<HashMap<i64, (NodeNo, i64, CallAnswered)>>,
    /// Calls of other nodes that are carried out here and are not answered yet.
    carried_out: Mutex<HashSet<i64>>,
    is_closed: AtomicBool,
}

impl Outbox {
    pub(crate) fn new(node: Arc<Node>) -> Arc<Self> {
        Arc::new(Self {
            node,
            items: Mutex::new(ranks::STORE_NOTICES, Vec::new()),
            wake: Notify::new(),
            waiting: Mutex::new(ranks::STORE_CALLS, HashMap::new()),
            carried_out: Mutex::new(ranks::STORE_CALLS, HashSet::new()),
            is_closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn push(&self, items: impl IntoIterator<Item = Item>) {
        self.items.lock().extend(items);
        self.wake.notify_one();
    }

    /// Returns the number of this node.
    pub(crate) fn node(&self) -> NodeNo {
        self.node.no()
    }

    /// Takes what waits to be sent.
    pub(crate) fn take(&self) -> VecDeque<Item> {
        std::mem::take(&mut *self.items.lock()).into()
    }

    /// Waits until something is to be sent, or the thread is to look at what has changed.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Has the thread look at what has changed.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Notifies nodes.
    pub(crate) fn notify(&self, to: &Recipient, notice: &Notice) {
        let nodes = self.node.find(to);
        self.push(nodes.into_iter().map(|node| Item::Notify(node, Entry::Notice(notice.clone()))));
    }

    /// Notifies nodes that the nodes or their shards have changed.
    pub(crate) fn notify_members(&self, nodes: impl IntoIterator<Item = NodeNo>) {
        self.push(nodes.into_iter().map(|node| Item::Notify(node, Entry::Members)));
    }

    /// Calls a node.
    pub(crate) fn call(&self, to: &Recipient, request: Vec<u8>, answered: CallAnswered) {
        let node = self.node.find(to).first().copied();
        let process = self.node.see(|view| view.process_of(node?));
        let (Some(node), Some(process)) = (node, process) else {
            return answered(Err(Refused::NotOwner.into()));
        };
        // 63 random bits: an id is used for seconds.
        let id = (uuid::Uuid::new_v4().as_u64_pair().0 >> 1) as i64;
        self.waiting.lock().insert(id, (node, process, answered));
        self.push([Item::Call { id, node, request }]);
    }

    /// Answers a call of another node.
    pub(crate) fn answer(&self, id: i64, answer: Vec<u8>) {
        self.push([Item::Answer { id, answer }]);
    }

    /// Looks for calls of which no notification came.
    pub(crate) fn take_calls(&self) {
        self.push([Item::TakeCalls]);
    }

    /// Looks for answers, and ends the calls of nodes that are gone.
    pub(crate) fn look(&self) {
        let live: BTreeSet<(NodeNo, i64)> =
            self.node.see(|view| view.nodes.iter().map(|node| (node.row.no, node.process)).collect());
        self.end_calls(|_, called| !live.contains(&called));
        if !self.waiting.lock().is_empty() {
            self.push([Item::TakeAnswers]);
        }
    }

    /// Ends calls that no node will answer any more.
    pub(crate) fn end_calls(&self, is_lost: impl Fn(i64, (NodeNo, i64)) -> bool) {
        let mut waiting = self.waiting.lock();
        let lost: Vec<i64> = waiting
            .iter()
            .filter(|(id, (node, process, _))| is_lost(**id, (*node, *process)))
            .map(|(id, _)| *id)
            .collect();
        let ended: Vec<CallAnswered> = lost.iter().filter_map(|id| Some(waiting.remove(id)?.2)).collect();
        drop(waiting);
        ended.into_iter().for_each(|answered| answered(Err(gone())));
        if !lost.is_empty() {
            self.push([Item::Forget(lost)]);
        }
    }

    /// Returns the calls that wait for an answer, and those of them that are yet to be sent.
    pub(crate) fn open_calls(&self) -> (BTreeSet<i64>, BTreeSet<i64>) {
        let waiting = self.waiting.lock().keys().copied().collect();
        let unsent = |item: &Item| if let Item::Call { id, .. } = item { Some(*id) } else { None };
        (waiting, self.items.lock().iter().filter_map(unsent).collect())
    }

    /// Ends the call of an item that cannot be sent.
    pub(crate) fn refuse(&self, item: &Item) {
        let Item::Call { id, .. } = item else { return };
        if let Some(answered) = self.end_waiting(*id) {
            answered(Err(gone()));
        }
    }

    /// Returns whether a caller waits for the answer to this call.
    pub(crate) fn waits_for(&self, call: i64) -> bool {
        self.waiting.lock().contains_key(&call)
    }

    /// Takes the callback of a call that waits for its answer.
    pub(crate) fn end_waiting(&self, call: i64) -> Option<CallAnswered> {
        self.waiting.lock().remove(&call).map(|(_, _, answered)| answered)
    }

    /// Notes that a call of another node is carried out. Returns false if it was noted before.
    pub(crate) fn begin_call(&self, call: i64) -> bool {
        self.carried_out.lock().insert(call)
    }

    /// Notes that a call of another node is answered.
    pub(crate) fn end_call(&self, call: i64) {
        self.carried_out.lock().remove(&call);
    }

    /// Puts back what could not be sent, before what came since.
    pub(crate) fn put_back(&self, items: impl IntoIterator<Item = Item>) {
        let mut waiting = self.items.lock();
        let since = std::mem::take(&mut *waiting);
        waiting.extend(items.into_iter().chain(since));
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.wake.notify_one();
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_values().for_each(|(_, _, answered)| answered(Err(gone())));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable(
        "the node that plays the run went away before it answered: look whether it was done, and call again".to_owned(),
    )
}
