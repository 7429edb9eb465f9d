//! A setting: its name, its unit, its limits, and how its values are written.

use std::fmt;

pub(super) const TIMES: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
pub(super) const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// One setting, as the table has it. Numbers are in the base of its unit: pieces, nanoseconds or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, in code and (in capitals, after `DACAPO_`) in the environment.
    pub name: &'static str,
    /// Whose setting it is.
    pub scope: Scope,
    /// What it is counted in.
    pub unit: Unit,
    /// What it is when nobody says otherwise.
    pub default: u64,
    /// The least it can be, apart from a 0 that means something.
    pub least: u64,
    /// The most it can be.
    pub most: u64,
    /// What 0 means, where it means something of its own.
    pub zero: Option<&'static str>,
    /// What it is for.
    pub about: &'static str,
}

impl Setting {
    /// What it can be, in words.
    pub fn allowed(&self) -> String {
        let [least, most] = [self.least, self.most].map(|raw| self.written(raw));
        match self.zero {
            Some(meaning) => format!("{least} to {most}, or 0: {meaning}"),
            None => format!("{least} to {most}"),
        }
    }

    /// A number in the base of its unit, as it could be written.
    pub fn written(&self, raw: u64) -> String {
        self.unit.written(raw)
    }
}

/// Whose setting it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// There is one for the whole program.
    Application,
    /// Every queue has its own.
    Queue,
}

/// What a setting is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Pieces.
    Count,
    /// A span of time.
    Time,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// A value in the largest unit that holds it without a rest. What is written can be read.
    pub(super) fn written(self, raw: u64) -> String {
        let in_largest = |units: &[(&str, u64)]| {
            let fits = units.iter().rev().find(|(_, size)| raw.is_multiple_of(*size));
            fits.map_or_else(|| raw.to_string(), |(name, size)| format!("{}{name}", raw / size))
        };
        match self {
            _ if raw == 0 => "0".to_owned(),
            Self::Count => raw.to_string(),
            Self::Time => in_largest(&TIMES),
            Self::Bytes if raw < 1 << 10 => raw.to_string(),
            Self::Bytes => in_largest(&SIZES),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Application => "application",
            Self::Queue => "queue",
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Bytes => "bytes",
        })
    }
}
