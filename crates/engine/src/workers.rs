//! The workers of an engine: one for each task queue that it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use dacapo_core::Name;
use dacapo_worker::{QueueValues, Registry, Worker};

/// One worker for each queue. There is at least one.
pub(crate) struct Workers(BTreeMap<Name, Arc<Worker>>);

impl Workers {
    pub(crate) fn new(queues: &BTreeMap<Name, QueueValues>, registry: &Registry) -> Self {
        let worker = |(queue, values): (&Name, &QueueValues)| {
            (queue.clone(), Arc::new(Worker::new(queue.clone(), values.clone(), registry.activities())))
        };
        Self(queues.iter().map(worker).collect())
    }

    /// Whether this queue is served here.
    pub(crate) fn serve(&self, queue: &str) -> bool {
        self.0.contains_key(queue)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Worker>> + Clone {
        self.0.values()
    }

    /// The worker of a queue; for work of a queue that is not served here, the first.
    pub(crate) fn of(&self, queue: &str) -> &Arc<Worker> {
        self.0.get(queue).unwrap_or_else(|| self.first())
    }

    pub(crate) fn first(&self) -> &Arc<Worker> {
        self.0.values().next().expect("an engine serves a queue at least")
    }

    /// The worker, if there is only one.
    pub(crate) fn only(&self) -> Option<&Arc<Worker>> {
        (self.0.len() == 1).then(|| self.first())
    }
}
