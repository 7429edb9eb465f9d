//! The nodes of a store in memory, their notices and calls.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dacapo_core::Name;

use crate::{CallAnswered, NodeNo, Notice, Recipient, Shard, StoreError};

/// The nodes, the owners of the shards, and what waits to be delivered.
#[derive(Default)]
pub(super) struct Members {
    pub(super) nodes: BTreeMap<NodeNo, Node>,
    pub(super) last: i64,
    pub(super) owners: BTreeMap<Shard, (Name, Option<NodeNo>)>,
    pub(super) deliveries: BTreeMap<NodeNo, VecDeque<Delivery>>,
}

pub(super) struct Node {
    pub(super) name: Name,
    pub(super) build: Name,
    pub(super) queues: Vec<Name>,
    pub(super) lease_until: Duration,
}

/// A notice or a call that waits for a node.
pub(super) enum Delivery {
    Notice(Notice),
    Call(Vec<u8>, CallAnswered),
}

impl Members {
    pub(super) fn add(&mut self, to: &Recipient, delivery: impl Fn() -> Delivery) {
        let nodes: Vec<NodeNo> = match to {
            Recipient::Node(node) => vec![*node],
            Recipient::OwnerOf(run) => {
                self.owners.get(&run.shard()).and_then(|(_, owner)| *owner).into_iter().collect()
            }
            Recipient::Serving(queue) => {
                self.nodes.iter().filter(|(_, node)| node.queues.contains(queue)).map(|(no, _)| *no).collect()
            }
        };
        for node in nodes.into_iter().filter(|node| self.nodes.contains_key(node)) {
            self.deliveries.entry(node).or_default().push_back(delivery());
        }
    }

    /// Removes a node that is gone. Returns the calls that no node answers now.
    pub(super) fn remove(&mut self, node: NodeNo) -> Vec<CallAnswered> {
        self.nodes.remove(&node);
        for (_, owner) in self.owners.values_mut() {
            owner.take_if(|owner| *owner == node);
        }
        let deliveries = self.deliveries.remove(&node).unwrap_or_default();
        deliveries
            .into_iter()
            .filter_map(|delivery| if let Delivery::Call(_, answered) = delivery { Some(answered) } else { None })
            .collect()
    }
}

/// Ends calls that no node answers.
pub(super) fn gone(calls: Vec<CallAnswered>) {
    for answered in calls {
        answered(Err(StoreError::Unavailable("the node is gone, and has not answered".to_owned())));
    }
}
