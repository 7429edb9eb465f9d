//! Settings: from code, from the environment, or by default.
//!
//! Code goes before the environment, and the environment before the defaults, in whatever order they are given. A
//! variable `DACAPO_<SETTING>` is for the application, or for all queues. `DACAPO_QUEUE_<NAME>_<SETTING>` is for one
//! queue and goes before it, with the queue's name in capitals and `_` for all but letters and digits
//! ([`queue_variable`]). [`AppSettings::effective`] checks everything, and nothing is checked before: an unknown name,
//! a value out of range or two names of one setting with two values are errors, never ignored. This module does not
//! read the environment by itself.

mod effective;
mod error;
mod names;
mod setting;
mod table;
mod value;
mod zombie;

use std::ffi::OsString;

use dacapo_core::Name;

pub use effective::{Effective, EffectiveRow, SettingOrigin};
pub use error::{SettingError, SettingErrors};
pub use names::{SettingAlias, queue_variable, setting_aliases};
pub use setting::{Setting, SettingScope, SettingUnit};
pub use table::{AppValues, QueueValues, SETTINGS_NUMBER, all_settings};
pub use zombie::ZombieSettings;

use setting::Raw;

/// The settings of an application: its own, and those of its queues. Each setting of the application has a setter.
#[derive(Clone, Debug, Default)]
pub struct AppSettings {
    given: Given,
    every_queue: Given,
    queues: Vec<QueueSettings>,
    environment: Vec<(OsString, OsString)>,
}

/// The settings of one queue. Each setting of a queue has a setter.
#[derive(Clone, Debug, Default)]
pub struct QueueSettings {
    queue: Name,
    given: Given,
}

/// The settings that code gave, in order.
#[derive(Clone, Debug, Default)]
struct Given(Vec<(String, Value)>);

#[derive(Clone, Debug)]
enum Value {
    Raw(Raw),
    Text(String),
}

impl Given {
    fn raw(&mut self, name: &str, raw: Raw) {
        self.put(name, Value::Raw(raw));
    }

    fn put(&mut self, name: &str, value: Value) {
        self.0.retain(|(before, _)| before != name);
        self.0.push((name.to_owned(), value));
    }
}

impl AppSettings {
    /// Creates settings without queues, all by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a queue. An app does so by `Dacapo::queue`.
    #[doc(hidden)]
    #[must_use]
    pub fn queue(mut self, queue: QueueSettings) -> Self {
        self.queues.push(queue);
        self
    }

    /// Changes settings of all queues, below those that a queue sets in code.
    #[must_use]
    pub fn every_queue(mut self, change: impl FnOnce(QueueSettings) -> QueueSettings) -> Self {
        for (name, value) in change(QueueSettings::default()).given.0 {
            self.every_queue.put(&name, value);
        }
        self
    }

    /// Returns the names of the queues that were added, in the order in which they were.
    #[doc(hidden)]
    pub fn queues(&self) -> impl Iterator<Item = &Name> {
        self.queues.iter().map(|settings| &settings.queue)
    }

    /// Adds the environment: `settings.environment(std::env::vars_os())`. Variables that do not begin with `DACAPO_`
    /// are ignored. An app does so by `Dacapo::environment`.
    #[doc(hidden)]
    #[must_use]
    pub fn environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Gives a setting by its name in code, such as `cache_size`, with a value as in an environment variable: for files and command
    /// lines. Counts as code.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.given.put(name, Value::Text(value.into()));
        self
    }

    /// Returns the effective settings with their origins, or all errors. An app does so by `Dacapo::effective`.
    #[doc(hidden)]
    pub fn effective(&self) -> Result<Effective, SettingErrors> {
        Effective::of(self)
    }
}

impl<N: Into<Name>> From<N> for QueueSettings {
    fn from(queue: N) -> Self {
        Self::new(queue)
    }
}

impl QueueSettings {
    /// Creates the settings of a queue, all by default.
    pub fn new(queue: impl Into<Name>) -> Self {
        Self { queue: queue.into(), given: Given::default() }
    }

    /// Gives a setting by its name in code, such as `cache_size`, with a value as in an environment variable: for files and command
    /// lines. Counts as code.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.given.put(name, Value::Text(value.into()));
        self
    }
}
