//! What a node counts for operators: how often the server or the other nodes were in its way.

use metrics::{Counter, Gauge};

/// The meters of a node. Their table is that of the worker.
pub(crate) struct Meters {
    /// The connection that commits was lost and made again.
    pub(crate) reconnects: Counter,
    /// A transaction met another one and was made again.
    pub(crate) conflicts: Counter,
    /// A group had been committed whose answer was lost.
    pub(crate) receipts: Counter,
    /// This node has taken another for dead.
    pub(crate) dead_nodes: Counter,
    /// The seconds that the lease had left when it was renewed.
    pub(crate) lease_left: Gauge,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            reconnects: metrics::counter!("dacapo_postgres_reconnects_total"),
            conflicts: metrics::counter!("dacapo_postgres_conflicts_total"),
            receipts: metrics::counter!("dacapo_postgres_receipts_total"),
            dead_nodes: metrics::counter!("dacapo_postgres_dead_nodes_total"),
            lease_left: metrics::gauge!("dacapo_postgres_lease_left"),
        }
    }
}
