//! How often a store has gone to the server, and for how much: what a turn costs is a number that a test can state.

use std::sync::atomic::{AtomicU64, Ordering};

/// Round trips and statements.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// Each prepares statements, or runs one or more.
    trips: u64,
    /// The statements that were run.
    statements: u64,
}

impl Traffic {
    /// Counts a trip of so many statements.
    pub(crate) fn count(&mut self, statements: usize) {
        self.trips += 1;
        self.statements += statements as u64;
    }

    /// Returns what has come since the count was like this.
    pub(crate) fn since(self, before: Self) -> Self {
        let Self { trips, statements } = before;
        Self { trips: self.trips.saturating_sub(trips), statements: self.statements.saturating_sub(statements) }
    }
}

/// The traffic of all connections of one kind.
#[derive(Default)]
pub(crate) struct TotalTraffic {
    trips: AtomicU64,
    statements: AtomicU64,
}

impl TotalTraffic {
    pub(crate) fn add(&self, traffic: Traffic) {
        self.trips.fetch_add(traffic.trips, Ordering::Relaxed);
        self.statements.fetch_add(traffic.statements, Ordering::Relaxed);
    }

    /// Returns the round trips, and the statements.
    #[cfg(feature = "conformance")]
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.trips.load(Ordering::Relaxed), self.statements.load(Ordering::Relaxed))
    }
}
