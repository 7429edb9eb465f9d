//! How much of each workload is run.

use std::time::Duration;

/// How much of each workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// W1 and W2 are repeated for so long.
    pub time: Duration,
    /// W1: workflows at once, and activities in each.
    pub chains: (u32, u32),
    /// W2: workflows at once, and activities in each.
    pub fans: (u32, u32),
    /// W3 and W4: chains that are run before anything is measured; fewer of them by rivals.
    pub warm_up: u32,
    /// W3: activities of the short run and of the long one.
    pub steps: (u32, u32),
    /// W4: workflows, one after another.
    pub turnarounds: u32,
    /// W5: activities in the history, and how often it is played again.
    pub history: (u32, u32),
    /// W6: workflows that sleep.
    pub sleepers: u32,
    /// W6: how long an idle process is watched.
    pub idle: Duration,
}

impl Size {
    /// What is published.
    pub const FULL: Self = Self {
        time: Duration::from_secs(5),
        chains: (500, 10),
        fans: (20, 100),
        warm_up: 1_000,
        steps: (1_000, 20_000),
        turnarounds: 200,
        history: (50_000, 5),
        sleepers: 100_000,
        idle: Duration::from_secs(10),
    };

    /// Rivals warm up with fewer chains: a rival's log in SQLite is written over from its thousandth page on, Dacapo's from its
    /// four-thousandth, and rivals' chains take longer. On PostgreSQL all systems warm up with as many.
    pub const fn rival_warm_up(&self) -> u32 {
        self.warm_up / 10
    }

    /// Enough to see that everything works.
    pub const QUICK: Self = Self {
        time: Duration::ZERO,
        chains: (20, 3),
        fans: (3, 10),
        warm_up: 10,
        steps: (50, 100),
        turnarounds: 5,
        history: (50, 2),
        sleepers: 200,
        idle: Duration::from_millis(50),
    };
}
