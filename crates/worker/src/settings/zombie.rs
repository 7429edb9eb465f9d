//! The settings of terminations.

use std::time::Duration;

use super::QueueValues;

/// The settings of terminations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZombieSettings {
    /// The number of zombies that shuts the application down; 0 for never.
    pub max_count: usize,
    /// The time from the request until the first retry.
    pub retry_interval: Duration,
    /// The longest time between two repeated requests to stop.
    pub retry_max_delay: Duration,
    /// The time from the request until the code counts as a zombie.
    pub grace_period: Duration,
    /// The time from the request until retries end. No sooner than the grace period.
    pub give_up_after: Duration,
    /// The time for which a shutdown waits for terminations.
    pub shutdown_timeout: Duration,
}

impl Default for ZombieSettings {
    fn default() -> Self {
        QueueValues::default().zombies()
    }
}

impl QueueValues {
    /// Returns the settings of this queue's terminations.
    #[doc(hidden)]
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
