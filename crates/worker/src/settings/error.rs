//! Errors of settings. Every error names the setting, the value, what is allowed and what to do, and has a code of its
//! own.

use std::fmt;

use thiserror::Error;

/// One error in the settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are what the texts name")]
pub enum SettingError {
    /// No setting has this name.
    #[error("unknown setting {by}{}: docs/settings.md lists all settings", meant(.nearest))]
    Unknown { by: String, nearest: Option<String> },
    /// The variable names a queue that this program does not serve.
    #[error("{by} is for a queue that is not served here{}; serve the queue or unset the variable", meant(.nearest))]
    UnknownQueue { by: String, nearest: Option<String> },
    /// The variable matches several queues.
    #[error("{by} could be meant for {}: set it in code, or give the queues names that differ in letters and digits", quoted(.queues))]
    AmbiguousQueue { by: String, queues: Vec<String> },
    /// A queue has no name.
    #[error("a queue is set up without a name: give it one, as in `queue(\"orders\")`")]
    NamelessQueue,
    /// A queue is set up twice.
    #[error("queue {queue:?} is set up twice: put its settings together")]
    QueueTwice { queue: String },
    /// A setting of the application was set for a queue.
    #[error("{by} is set for queue {queue:?}, but there is one for the whole application: set it there")]
    NotOfAQueue { by: String, queue: String },
    /// A setting of a queue was set for the application.
    #[error("{by} is set for the application, but every queue has its own: set it for a queue")]
    NotOfTheApplication { by: String },
    /// A count is not a number.
    #[error("invalid value {by} = {value:?}: write a whole number such as 200; allowed are {allowed}")]
    NotACount { by: String, value: String, allowed: String },
    /// A time cannot be read.
    #[error(
        "invalid value {by} = {value:?}: write a number with its unit (ns, us, ms, s, m, h, d) such as 1.5s; allowed are {allowed}"
    )]
    NotATime { by: String, value: String, allowed: String },
    /// A number of milliseconds is not one.
    #[error(
        "invalid value {by} = {value:?}: write a whole number of milliseconds without a unit; allowed are {allowed}"
    )]
    NotMillis { by: String, value: String, allowed: String },
    /// A size cannot be read.
    #[error(
        "invalid value {by} = {value:?}: write a number of bytes, or one with its unit (KiB, MiB, GiB); allowed are {allowed}"
    )]
    NotBytes { by: String, value: String, allowed: String },
    /// A folder has no name.
    #[error("invalid value {by} = \"\": name a folder, or leave the setting out")]
    NotAPath { by: String },
    /// A value is too small or too big.
    #[error("{by} = {value} is out of range: allowed are {allowed}")]
    OutOfRange { by: String, value: String, allowed: String },
    /// A variable is not Unicode text.
    #[error("invalid value {by} = {value:?}: write Unicode text")]
    NotText { by: String, value: String },
    /// Two names of one setting have two values.
    #[error("{one} = {one_value} and {other} = {other_value} are one setting, {setting}, with two values: keep one")]
    Conflict { setting: &'static str, one: String, one_value: String, other: String, other_value: String },
    /// Two settings contradict each other.
    #[error(
        "queue {queue:?}: {lesser} = {lesser_value} must not be more than {greater} = {greater_value}: lower the first or raise the second"
    )]
    Disordered {
        queue: String,
        lesser: &'static str,
        lesser_value: String,
        greater: &'static str,
        greater_value: String,
    },
}

impl SettingError {
    /// Returns a short name of the kind of error, by which it can be looked up.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "setting-unknown",
            Self::UnknownQueue { .. } => "setting-queue-unknown",
            Self::AmbiguousQueue { .. } => "setting-queue-ambiguous",
            Self::NamelessQueue => "setting-queue-nameless",
            Self::QueueTwice { .. } => "setting-queue-twice",
            Self::NotOfAQueue { .. } => "setting-not-of-a-queue",
            Self::NotOfTheApplication { .. } => "setting-not-of-the-application",
            Self::NotACount { .. } => "setting-no-count",
            Self::NotATime { .. } => "setting-no-time",
            Self::NotMillis { .. } => "setting-no-milliseconds",
            Self::NotBytes { .. } => "setting-no-size",
            Self::NotAPath { .. } => "setting-no-folder",
            Self::OutOfRange { .. } => "setting-out-of-range",
            Self::NotText { .. } => "setting-no-text",
            Self::Conflict { .. } => "setting-conflict",
            Self::Disordered { .. } => "setting-disorder",
        }
    }
}

/// All errors in the settings, so that they can be fixed in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingErrors(pub Vec<SettingError>);

impl fmt::Display for SettingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}{error} [{}]", error.code())?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingErrors {}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!(" (did you mean {nearest}?)"))
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("queue {name:?}")).collect();
    names.join(" or ")
}
