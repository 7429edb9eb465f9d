//! Interrupting the reads of a node in memory, for tests: something happens between a read and the reader that gets it.

use std::collections::BTreeMap;

use dacapo_sync::{Mutex, ranks};

/// A kind of read that can be interrupted by [`MemoryNode::after_reading`](crate::MemoryNode::after_reading).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// A run that is about to be played, with all that needs.
    Load,
    /// The messages of a run that no turn has taken.
    Unseen,
}

/// The interruption of the next read of each kind.
pub(super) struct Interruptions(Mutex<BTreeMap<Reading, Interruption>>);

pub(super) type Interruption = Box<dyn FnOnce() + Send>;

impl Default for Interruptions {
    fn default() -> Self {
        Self(Mutex::new(ranks::NODE, BTreeMap::new()))
    }
}

impl Interruptions {
    /// Has the next read of this kind interrupted.
    pub(super) fn add(&self, reading: Reading, interruption: Interruption) {
        self.0.lock().insert(reading, interruption);
    }

    /// Interrupts a read, if that is wanted.
    pub(super) fn interrupt(&self, reading: Reading) {
        let interruption = self.0.lock().remove(&reading);
        if let Some(interruption) = interruption {
            interruption();
        }
    }
}
