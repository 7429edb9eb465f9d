//! Task queues that no worker serves: each is logged once.

use std::collections::BTreeMap;

use dacapo_core::Name;
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{Level, meter};

use crate::report::log;

/// Queues that were named and are not served here, each with its level in the metrics.
pub(crate) struct QueueLog(Mutex<BTreeMap<Name, Level>>);

impl QueueLog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::QUEUE_LOG, BTreeMap::new()))
    }

    /// Whether no such queue was named yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Logs, once for each queue, that a run or an activity waits in a queue that is not served here.
    pub(crate) fn report(&self, queue: &Name, served: &str) {
        let mut queues = self.0.lock();
        let is_first = !queues.contains_key(queue);
        queues.entry(queue.clone()).or_insert_with(|| meter::QUEUE_UNSERVED.level(&[queue])).set(1);
        drop(queues);
        if is_first {
            log::engine_warning(&format_args!("{}; served here: {served}", words(queue)));
        }
    }
}

/// The reason with which a run is stuck that waits for such a queue.
pub(crate) fn words(queue: &str) -> String {
    format!(
        "no worker of this program serves task queue {queue:?}: what is started or called there waits until a program does. \
         Serve that queue, or name one that is served"
    )
}
