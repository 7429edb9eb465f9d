//! A setting: its name, its unit, its limits, and the form of its values.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use dacapo_core::DurationText;

pub(super) const TIMES: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
pub(super) const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A value as a worker reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Raw {
    /// A number in the base of its unit.
    Number(u64),
    /// A folder. None by default.
    Path(Option<PathBuf>),
}

impl Raw {
    /// Returns the number. 0 for a folder.
    pub(super) fn number(&self) -> u64 {
        if let Self::Number(number) = self { *number } else { 0 }
    }

    /// Returns the folder. None for a number.
    pub(super) fn path(self) -> Option<PathBuf> {
        if let Self::Path(path) = self { path } else { None }
    }
}

/// One setting, a row of the table. Numbers are in the base of its unit: pieces, nanoseconds or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The setting's name, in code and (in capitals, after `DACAPO_`) in the environment.
    pub name: &'static str,
    /// The scope: the application or a queue.
    pub scope: SettingScope,
    /// The setting's unit.
    pub unit: SettingUnit,
    /// The default value.
    pub default: u64,
    /// The least value, apart from a 0 that has a meaning of its own.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// The meaning of 0, where it has one of its own.
    pub zero: Option<&'static str>,
    /// The setting's purpose.
    pub about: &'static str,
}

impl Setting {
    /// Returns the allowed values as text.
    pub fn allowed(&self) -> String {
        if self.unit == SettingUnit::Path {
            return "a folder".to_owned();
        }
        let [least, most] = [self.least, self.most].map(|raw| self.written(raw));
        match self.zero {
            Some(meaning) => format!("{least} to {most}, or 0: {meaning}"),
            None => format!("{least} to {most}"),
        }
    }

    /// Formats a number in the base of the unit, in the form in which it can be written. Empty for a folder, which is none by default.
    pub fn written(&self, raw: u64) -> String {
        self.unit.written(raw)
    }

    /// Formats a value in the form in which it can be written. Empty for no folder.
    pub(super) fn shown(&self, raw: &Raw) -> String {
        match raw {
            Raw::Number(number) => self.written(*number),
            Raw::Path(path) => path.as_ref().map_or_else(String::new, |path| path.display().to_string()),
        }
    }

    /// Returns the default value.
    pub(super) fn default_raw(&self) -> Raw {
        match self.unit {
            SettingUnit::Path => Raw::Path(None),
            _ => Raw::Number(self.default),
        }
    }
}

/// The scope of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// One value for the whole program.
    Application,
    /// A value for every queue.
    Queue,
}

/// The unit of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingUnit {
    /// A number of pieces.
    Count,
    /// A span of time.
    Time,
    /// A number of bytes.
    Bytes,
    /// The path of a folder.
    Path,
}

impl SettingUnit {
    /// Formats a value: a time in the units that it has, a size in the largest unit that holds it without a rest. The text can be parsed again.
    pub(super) fn written(self, raw: u64) -> String {
        let in_largest = |units: &[(&str, u64)]| {
            let fits = units.iter().rev().find(|(_, size)| raw.is_multiple_of(*size));
            fits.map_or_else(|| raw.to_string(), |(name, size)| format!("{}{name}", raw / size))
        };
        match self {
            Self::Path => String::new(),
            _ if raw == 0 => "0".to_owned(),
            Self::Count => raw.to_string(),
            Self::Time => DurationText(Duration::from_nanos(raw)).to_string(),
            Self::Bytes if raw < 1 << 10 => raw.to_string(),
            Self::Bytes => in_largest(&SIZES),
        }
    }
}

impl fmt::Display for SettingScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Application => "application",
            Self::Queue => "queue",
        })
    }
}

impl fmt::Display for SettingUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::Path => "path",
        })
    }
}
