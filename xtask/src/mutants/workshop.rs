//! The copy of the tree in which mutants are tried.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::list::Mutant;
use super::trial::{self, Outcome};
use crate::tree;

/// Seconds for all tests of an unbroken tree, however short a mutant's own limit is.
const WHOLE: u64 = 300;

pub(super) struct Workshop {
    /// The copy.
    bench: PathBuf,
    /// Its own build, so that the developer's stays warm.
    target: PathBuf,
}

impl Workshop {
    pub(super) fn set_up(root: &Path) -> Result<Self> {
        let home = root.join("target/mutants");
        let bench = home.join("tree");
        if bench.exists() {
            fs::remove_dir_all(&bench).context("cannot clear target/mutants/tree")?;
        }
        for path in tree::paths(root)? {
            let copy = bench.join(&path);
            fs::create_dir_all(copy.parent().unwrap_or(&bench))?;
            fs::copy(root.join(&path), &copy).with_context(|| format!("cannot copy {path}"))?;
        }
        Ok(Self { bench, target: home.join("target") })
    }

    /// Breaks the copy, and gives the unbroken text of the file.
    pub(super) fn apply(&self, mutant: &Mutant) -> Result<String> {
        let path = self.bench.join(&mutant.file);
        let text = fs::read_to_string(&path)?;
        fs::write(&path, mutant.broken(&text)?).with_context(|| mutant.file.clone())?;
        Ok(text)
    }

    pub(super) fn restore(&self, mutant: &Mutant, text: &str) -> Result<()> {
        fs::write(self.bench.join(&mutant.file), text).with_context(|| mutant.file.clone())
    }

    pub(super) fn trial(&self, mutant: &Mutant) -> Result<Outcome> {
        let (build, filter) = mutant.build_and_filter();
        trial::run(&self.bench, &self.target, build, filter, mutant.limit)
    }

    /// All the tests of which the mutant's trial runs some.
    pub(super) fn whole(&self, mutant: &Mutant) -> Result<Outcome> {
        let (build, _) = mutant.build_and_filter();
        trial::run(&self.bench, &self.target, build, "", mutant.limit.max(WHOLE))
    }
}
