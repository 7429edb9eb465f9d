//! The list of nodes, for callers.

use dacapo_client::{Error, Node};
use dacapo_core::Name;
use dacapo_store::NodeRow;

use crate::shared::Shared;

/// Lists the nodes of the store, or this process as the only one.
pub(crate) fn list(shared: &Shared) -> Result<Vec<Node>, Error> {
    let Some(nodes) = shared.nodes() else { return Ok(vec![this_process(shared)]) };
    let me = nodes.node();
    let node = |row: NodeRow| {
        let mut node = Node::new(row.name, row.build, row.queues);
        (node.shards, node.lease, node.answers) = (Some(row.shards), Some(row.lease), row.no == me);
        node
    };
    Ok(nodes.nodes()?.into_iter().map(node).collect())
}

fn this_process(shared: &Shared) -> Node {
    let queues = shared.workers.all().map(|worker| worker.queue().clone()).collect();
    let name = Name::from(format!("process {}", std::process::id()));
    let mut node = Node::new(name, shared.options.build.clone(), queues);
    node.answers = true;
    node
}
