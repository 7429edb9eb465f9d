//! What `tidy` checks of each crate's modules and shape. It prints the figures of every crate in this list.

use anyhow::Result;

use crate::modules::Crate;
use crate::tree::Tree;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// No dependency cycle between modules.
    Cycles,
    /// Functions are short.
    Functions,
    /// Files are short.
    Files,
    /// No type has too many methods.
    Methods,
}

use Check::{Cycles, Files, Functions, Methods};

/// The crates and the checks that each of them has to pass. Add a check to a row as soon as its crate passes it.
const CRATES: &[(&str, &[Check])] = &[
    ("core", &[Files]),
    ("store", &[Cycles, Functions, Files, Methods]),
    ("sqlite", &[Cycles, Functions, Files, Methods]),
    ("postgres", &[Cycles, Functions, Files, Methods]),
    ("sync", &[Cycles, Functions, Files, Methods]),
    ("sys", &[Cycles, Functions, Files, Methods]),
    ("worker", &[Cycles, Functions, Files, Methods]),
    ("engine", &[Cycles, Functions, Files, Methods]),
    ("temporal", &[Cycles, Functions, Files, Methods]),
    ("macros", &[Cycles, Files, Methods]),
    ("dacapo", &[Cycles, Functions, Files]),
    ("test-postgres", &[Cycles, Functions, Files, Methods]),
    ("testkit", &[Cycles, Functions, Files, Methods]),
    ("faults", &[Cycles, Functions, Files, Methods]),
];

/// A crate of the list that the tree holds.
pub(super) struct Checked {
    pub(super) name: &'static str,
    pub(super) modules: Crate,
    enforced: &'static [Check],
}

impl Checked {
    pub(super) fn enforces(&self, check: Check) -> bool {
        self.enforced.contains(&check)
    }
}

/// The crates of the list.
pub(super) fn all(tree: &Tree) -> Result<Vec<Checked>> {
    let loaded = CRATES.iter().map(|(name, enforced)| {
        let modules = Crate::load(tree, &format!("crates/{name}"))?;
        Ok(modules.map(|modules| Checked { name, modules, enforced }))
    });
    loaded.filter_map(Result::transpose).collect()
}

/// A crate that has to pass all checks, for the tests of the rules.
#[cfg(test)]
pub(super) fn strict(tree: &Tree, name: &'static str) -> Checked {
    let modules = Crate::load(tree, &format!("crates/{name}")).unwrap().unwrap();
    Checked { name, modules, enforced: &[Cycles, Functions, Files, Methods] }
}
