//! The results that were found so far, in a file under `target/mutants`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// All tests passed.
    Missed,
    /// The tests took longer than they may.
    Timeout,
    /// It does not compile.
    Unviable,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Caught => "caught",
            Self::Missed => "missed",
            Self::Timeout => "timeout",
            Self::Unviable => "unviable",
        })
    }
}

/// What identifies a mutant: its name, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) mutant: String,
    /// A hash of its file and of what it changes, so that it is tried again when one of them has changed.
    pub(super) text: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    outcome: Outcome,
}

pub(super) struct Results {
    file: PathBuf,
    found: BTreeMap<Key, Outcome>,
}

impl Results {
    /// Reads the kept results. A line that cannot be read was cut off by an interruption and counts as none.
    pub(super) fn load(home: &Path) -> Result<Self> {
        fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
        let file = home.join("results.jsonl");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        Ok(Self { file, found: lines.map(|line| (line.key, line.outcome)).collect() })
    }

    pub(super) fn get(&self, key: &Key) -> Option<Outcome> {
        self.found.get(key).copied()
    }

    /// Forgets what was missed, in memory: a new result replaces it.
    pub(super) fn forget_missed(&mut self) {
        self.found.retain(|_, outcome| *outcome != Outcome::Missed);
    }

    pub(super) fn keep(&mut self, key: Key, outcome: Outcome) -> Result<()> {
        let line = serde_json::to_string(&Line { key: key.clone(), outcome })?;
        let opened = OpenOptions::new().create(true).append(true).open(&self.file);
        let mut file = opened.with_context(|| format!("cannot open {}", self.file.display()))?;
        writeln!(file, "{line}").with_context(|| format!("cannot write {}", self.file.display()))?;
        self.found.insert(key, outcome);
        Ok(())
    }
}

/// FNV-1a: the same on every machine.
pub(super) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = seed.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
    let hash = bytes.iter().fold(hash, mix);
    // The last bytes reach the high bits only here.
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_survive_an_interruption_and_later_ones_replace_earlier_ones() {
        let home = std::env::temp_dir().join(format!("xtask-results-{}", std::process::id()));
        let key = |mutant: &str| Key { mutant: mutant.to_owned(), text: 7 };
        let mut results = Results::load(&home).unwrap();
        results.keep(key("a"), Outcome::Missed).unwrap();
        results.keep(key("b"), Outcome::Caught).unwrap();
        results.keep(key("a"), Outcome::Caught).unwrap();
        let cut = fs::read_to_string(home.join("results.jsonl")).unwrap() + "{\"mutant\":\"c\",";
        fs::write(home.join("results.jsonl"), cut).unwrap();
        let results = Results::load(&home).unwrap();
        fs::remove_dir_all(&home).unwrap();
        let got = ["a", "b", "c"].map(|mutant| results.get(&key(mutant)));
        assert_eq!(got, [Some(Outcome::Caught), Some(Outcome::Caught), None]);
        assert_eq!(results.get(&Key { text: 8, ..key("a") }), None);
    }
}
