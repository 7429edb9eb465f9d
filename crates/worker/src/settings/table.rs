//! The one table of all settings. Defaults, limits, parsing, documentation and the fields that a worker reads all come
//! from here.

use std::path::PathBuf;
use std::time::Duration;

use super::setting::{Raw, Setting, SettingScope, SettingUnit};

/// The number of the tables of settings. It rises when a name, a scope or a unit changes: deployments depend on them.
pub const SETTINGS_NUMBER: u32 = 3;

/// A value, converted between the type of its field and that of the table.
pub(super) trait Amount {
    fn from_raw(raw: u64) -> Self;
    fn into_raw(self) -> u64;
}

impl Amount for usize {
    fn from_raw(raw: u64) -> Self {
        Self::try_from(raw).unwrap_or(Self::MAX)
    }

    fn into_raw(self) -> u64 {
        u64::try_from(self).unwrap_or(u64::MAX)
    }
}

impl Amount for u32 {
    fn from_raw(raw: u64) -> Self {
        Self::try_from(raw).unwrap_or(Self::MAX)
    }

    fn into_raw(self) -> u64 {
        self.into()
    }
}

impl Amount for Duration {
    fn from_raw(raw: u64) -> Self {
        Self::from_nanos(raw)
    }

    fn into_raw(self) -> u64 {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * S;
const YEAR: u64 = 365 * 24 * HOUR;
const MIB: u64 = 1 << 20;
const MANY: u64 = 1_000_000;

/// Defines a table, the struct that a worker reads, and the setters by which code gives values. A macro, because each
/// row must be all three and a row that was forgotten in one of them would go unnoticed.
macro_rules! settings {
    ($scope:ident, $rows:ident, $values:ident, $builder:ident; $(
        $(#[doc = $about:literal])+ $name:ident: $kind:ty, $unit:ident, $default:expr, $least:expr, $most:expr, $zero:expr;
    )+ $(folders: $(
        $(#[doc = $about_folder:literal])+ $folder:ident;
    )+)?) => {
        pub(super) static $rows: &[Setting] = &[$(Setting {
            name: stringify!($name),
            scope: SettingScope::$scope,
            unit: SettingUnit::$unit,
            default: $default,
            least: $least,
            most: $most,
            zero: $zero,
            about: concat!($($about),+).trim_ascii(),
        },)+ $($(Setting {
            name: stringify!($folder),
            scope: SettingScope::$scope,
            unit: SettingUnit::Path,
            default: 0,
            least: 0,
            most: 0,
            zero: None,
            about: concat!($($about_folder),+).trim_ascii(),
        },)+)?];

        /// The effective values of all settings of one scope.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $values {
            $($(#[doc = $about])+ pub $name: $kind,)+
            $($($(#[doc = $about_folder])+ pub $folder: Option<PathBuf>,)+)?
        }

        impl $values {
            pub(super) fn read(raw: impl Fn(&'static str) -> Raw) -> Self {
                Self {
                    $($name: Amount::from_raw(raw(stringify!($name)).number()),)+
                    $($($folder: raw(stringify!($folder)).path(),)+)?
                }
            }
        }

        /// The default values.
        impl Default for $values {
            fn default() -> Self {
                let of = |name| $rows.iter().find(|row| row.name == name).map(Setting::default_raw);
                Self::read(|name| of(name).unwrap_or(Raw::Number(0)))
            }
        }

        /// Settings in code.
        impl super::$builder {
            $(
                $(#[doc = $about])+
                #[must_use]
                pub fn $name(mut self, value: $kind) -> Self {
                    self.given.raw(stringify!($name), Raw::Number(value.into_raw()));
                    self
                }
            )+
            $($(
                $(#[doc = $about_folder])+
                #[must_use]
                pub fn $folder(mut self, value: impl Into<PathBuf>) -> Self {
                    self.given.raw(stringify!($folder), Raw::Path(Some(value.into())));
                    self
                }
            )+)?
        }
    };
}

settings! { Application, APPLICATION, AppValues, AppSettings;
    /// How long a process may take to end by itself, after a signal or too many zombies, before it is ended with exit code 1.
    force_exit_timeout: Duration, Time, 60 * S, MS, YEAR, None;
    /// How many runs stay in memory between their turns.
    cache_size: usize, Count, 10_000, 1, 100 * MANY, Some("every turn is played from the beginning");
    /// The largest size of one payload.
    payload_limit: usize, Bytes, 2 * MIB, 1, 1 << 30, None;
    /// How many messages may wait for one run; a further sender is refused.
    message_limit: usize, Count, 200_000, 1, 100 * MANY, None;
    /// How many messages and results of operations one turn takes at most.
    completions_per_turn: usize, Count, 256, 1, MANY, None;
    /// How long closed runs are kept before they are deleted.
    retention: Duration, Time, 0, S, 100 * YEAR, Some("for ever");
    /// How many threads play turns.
    turn_threads: usize, Count, 0, 1, 10_000, Some("one for each core, and one more");
    /// How many deaths of the process in a row, each while its code ran, delay an activity or a run.
    crash_delay_after: u32, Count, 3, 1, MANY, Some("never");
    /// The first delay after such deaths; it doubles with every further death.
    crash_delay: Duration, Time, S, MS, YEAR, None;
    /// The longest delay after such deaths.
    crash_delay_limit: Duration, Time, 600 * S, MS, YEAR, None;
    /// How many deaths of the process in a row, each while its code ran, quarantine an activity or a run until it is released.
    crash_quarantine_after: u32, Count, 20, 1, MANY, Some("never");
    folders:
    /// The folder in which a process notes what it runs, for a store that has no place of its own for that: one in PostgreSQL. Each process needs its own. Without one no death of the process is counted.
    state_dir;
}

settings! { Queue, QUEUE, QueueValues, QueueSettings;
    /// How many turns of workflows are played at a time.
    max_concurrent_workflows: usize, Count, 200, 1, MANY, None;
    /// How many attempts of activities run at a time.
    max_concurrent_activities: usize, Count, 200, 1, MANY, None;
    /// How long a turn may take before the engine gives up on it as a deadlock.
    workflow_deadlock_timeout: Duration, Time, 2 * S, MS, YEAR, Some("turns are not watched");
    /// The longest interval at which heartbeats are stored, whatever the heartbeat timeout.
    max_heartbeat_throttle_interval: Duration, Time, 60 * S, MS, YEAR, Some("every report is stored");
    /// The interval at which heartbeats are stored for an activity without a heartbeat timeout.
    default_heartbeat_throttle_interval: Duration, Time, 30 * S, MS, YEAR, Some("every report is stored");
    /// At shutdown, how long running work may go on before it is cancelled.
    shutdown_grace_period: Duration, Time, 10 * S, MS, YEAR, Some("work is cancelled at once");
    /// At shutdown, how long the engine waits for cancelled work to end.
    shutdown_force_timeout: Duration, Time, 5 * S, MS, YEAR, Some("nothing is waited for");
    /// How many zombies make the application shut down.
    max_zombie_count: usize, Count, 10, 1, MANY, Some("never");
    /// How long after a request to stop the request is repeated for the first time.
    zombie_retry_interval: Duration, Time, S, MS, YEAR, None;
    /// The longest time between two repeated requests to stop.
    zombie_retry_max_delay: Duration, Time, 60 * S, MS, YEAR, None;
    /// How long after a request to stop code that still runs counts as a zombie and is reported.
    zombie_grace_period: Duration, Time, 10 * S, MS, YEAR, Some("it counts at once");
    /// How long after a request to stop the engine gives up and the code counts as leaked.
    zombie_give_up_after: Duration, Time, HOUR, MS, YEAR, None;
    /// At shutdown, how long the engine waits for code that was asked to stop before.
    zombie_shutdown_timeout: Duration, Time, 30 * S, MS, YEAR, Some("nothing is waited for");
}

/// Returns all settings: those of the application, then those of each queue.
pub fn all_settings() -> impl Iterator<Item = &'static Setting> {
    APPLICATION.iter().chain(QUEUE)
}
