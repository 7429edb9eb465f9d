//! The workers of an engine: one for each task queue that it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use dacapo_core::Name;
use dacapo_worker::{QueueValues, Registry, Worker};

/// One worker for each queue. There is at least one.
pub(crate) struct Workers {
    all: BTreeMap<Name, Arc<Worker>>,
    default: Arc<Worker>,
}

impl Workers {
    /// `default_queue` is where starts go that name no queue. If it is not served, the first of the others takes its place.
    pub(crate) fn new(queues: &BTreeMap<Name, QueueValues>, default_queue: &Name, registry: &Registry) -> Self {
        let worker = |(queue, values): (&Name, &QueueValues)| {
            (queue.clone(), Arc::new(Worker::new(queue.clone(), values.clone(), registry.activities())))
        };
        let all: BTreeMap<Name, Arc<Worker>> = queues.iter().map(worker).collect();
        let default = all.get(default_queue).or_else(|| all.values().next());
        Self { default: default.expect("an engine serves a queue at least").clone(), all }
    }

    /// Whether this queue is served here.
    pub(crate) fn serve(&self, queue: &str) -> bool {
        self.all.contains_key(queue)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Worker>> + Clone {
        self.all.values()
    }

    /// The worker of a queue; for work of a queue that is not served here, that of the default queue.
    pub(crate) fn of(&self, queue: &str) -> &Arc<Worker> {
        self.all.get(queue).unwrap_or(&self.default)
    }

    /// The worker of the queue of starts that name none.
    pub(crate) fn default(&self) -> &Arc<Worker> {
        &self.default
    }

    /// The worker, if there is only one.
    pub(crate) fn only(&self) -> Option<&Arc<Worker>> {
        (self.all.len() == 1).then_some(&self.default)
    }
}
