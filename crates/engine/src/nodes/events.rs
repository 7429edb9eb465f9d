//! The engine as a node of a store.

use std::sync::Weak;

use dacapo_store::{NodeEvents, Notice, Shards, StoreError, TaskNo};

use crate::crash_guard::count::count_crash;
use crate::nodes::{calls, hand_over, notices, take_over};
use crate::shared::Shared;

/// Receives what happens to the node. The store outlives the engine.
pub(crate) struct EngineEvents(pub(crate) Weak<Shared>);

impl NodeEvents for EngineEvents {
    fn joined(&self) -> Result<(), StoreError> {
        match self.0.upgrade().map_or(Ok(false), |shared| count_crash(&shared))? {
            true => Ok(()),
            false => Err(StoreError::Unavailable("the engine has stopped".to_owned())),
        }
    }

    fn gained(&self, shards: Shards) {
        if let Some(shared) = self.0.upgrade() {
            take_over::gained(&shared, shards);
        }
    }

    fn giving(&self, shards: Shards) -> Vec<TaskNo> {
        self.0.upgrade().map(|shared| hand_over::give(&shared, &shards)).unwrap_or_default()
    }

    fn lost(&self, shards: Shards, all: bool) {
        if let Some(shared) = self.0.upgrade() {
            hand_over::lost(&shared, &shards, all);
        }
    }

    fn notified(&self, notice: Notice) {
        if let Some(shared) = self.0.upgrade() {
            notices::receive(&shared, notice);
        }
    }

    fn called(&self, request: Vec<u8>, answer: Box<dyn FnOnce(Vec<u8>) + Send>) {
        if let Some(shared) = self.0.upgrade() {
            calls::called(&shared, &request, answer);
        }
    }

    fn look(&self, owned: Shards) {
        if let Some(shared) = self.0.upgrade() {
            notices::look(&shared, owned);
        }
    }
}
