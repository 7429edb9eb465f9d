//! The alarm for the zombies of each task queue, and whether there were too many of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dacapo_core::Name;
use dacapo_sync::{Mutex, MutexGuard, ranks};

use crate::timer::wheel::AlarmNo;

/// The alarms of all queues, and the reason for which the engine shuts itself down.
pub(crate) struct ZombieAlarms {
    alarms: Mutex<BTreeMap<Name, AlarmNo>>,
    shuts_down: tokio::sync::watch::Sender<Option<Arc<str>>>,
}

impl ZombieAlarms {
    pub(crate) fn new() -> Self {
        Self {
            alarms: Mutex::new(ranks::ZOMBIE_ALARMS, BTreeMap::new()),
            shuts_down: tokio::sync::watch::Sender::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, AlarmNo>> {
        self.alarms.lock()
    }

    /// Notes that the engine shuts itself down for this reason. False if it did before.
    pub(crate) fn shut_down(&self, why: &str) -> bool {
        self.shuts_down.send_if_modified(|reason| match reason {
            Some(_) => false,
            None => {
                *reason = Some(why.into());
                true
            }
        })
    }

    /// Waits until the engine shuts itself down, and returns the reason.
    pub(crate) fn shut_down_reason(&self) -> impl Future<Output = Arc<str>> + Send + use<> {
        let mut reason = self.shuts_down.subscribe();
        async move {
            let why = reason.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            match why {
                Some(why) => why,
                // The engine is gone, and will never shut itself down.
                None => std::future::pending().await,
            }
        }
    }
}
