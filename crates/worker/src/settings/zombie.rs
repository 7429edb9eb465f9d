//! The settings of terminations, by themselves.

use std::time::Duration;

use super::QueueValues;

/// How terminations go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZombieSettings {
    /// How many zombies shut the application down; 0 for never.
    pub max_count: usize,
    /// How long until the first retry.
    pub retry_interval: Duration,
    /// The longest time between two retries.
    pub retry_max_delay: Duration,
    /// How long until it counts as a zombie.
    pub grace_period: Duration,
    /// How long until retries end. No sooner than the grace period.
    pub give_up_after: Duration,
    /// How long a shutdown waits for terminations.
    pub shutdown_timeout: Duration,
}

impl Default for ZombieSettings {
    fn default() -> Self {
        QueueValues::default().zombies()
    }
}

impl QueueValues {
    /// How terminations of this queue go.
    pub fn zombies(&self) -> ZombieSettings {
        ZombieSettings {
            max_count: self.max_zombie_count,
            retry_interval: self.zombie_retry_interval,
            retry_max_delay: self.zombie_retry_max_delay,
            grace_period: self.zombie_grace_period,
            give_up_after: self.zombie_give_up_after,
            shutdown_timeout: self.zombie_shutdown_timeout,
        }
    }
}
