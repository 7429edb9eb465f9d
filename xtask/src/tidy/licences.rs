//! Every dependency has a licence under which a user may ship it beside MIT or Apache 2.0.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Finding;
use crate::cargo;
use crate::tree::Tree;

/// Licences that ask for no more than a notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "BlueOak-1.0.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages whose manifest does not say what their licence file says, or whose licence needs a word, with the licence and the reason.
const KNOWN: &[(&str, &str, &str)] = &[
    // Of the optional feature `temporal`.
    ("option-ext", "MPL-2.0", "used as it is; the licence asks to publish changes to its files alone"),
    ("temporalio-client", "MIT", "its licence file"),
    ("temporalio-common", "MIT", "its licence file"),
    ("temporalio-common-wasm", "MIT", "its licence file"),
    ("temporalio-macros", "MIT", "its licence file"),
    ("temporalio-protos", "MIT", "its licence file"),
    ("temporalio-sdk-core", "MIT", "its licence file"),
];

/// The one platform that is built and tested; packages for others may not be on this machine.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let asked = cargo::command(&tree.root)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])
        .output()
        .context("cannot start `cargo metadata`")?;
    ensure!(asked.status.success(), "`cargo metadata` failed: {}", String::from_utf8_lossy(&asked.stderr));
    let metadata: Metadata = serde_json::from_slice(&asked.stdout).context("cannot read `cargo metadata`")?;
    Ok(metadata.packages.iter().filter_map(Package::problem).map(|text| Finding::at("Cargo.lock", 1, text)).collect())
}

impl Package {
    fn problem(&self) -> Option<String> {
        let package = format!("{} {}", self.name, self.version);
        let known = KNOWN.iter().find(|(name, ..)| *name == self.name).map(|(_, licence, _)| *licence);
        if known.is_some() && self.license.as_deref().is_none_or(|said| known == Some(said)) {
            return None;
        }
        let Some(expression) = &self.license else { return Some(format!("{package} names no licence")) };
        match Expression::is_allowed(expression) {
            Some(true) => None,
            Some(false) => Some(format!("{package} has licence {expression:?}, which is not among those allowed")),
            None => Some(format!("{package} has licence {expression:?}, which is no licence expression")),
        }
    }
}

/// A licence expression, word by word: `(MIT OR Apache-2.0) AND Unicode-3.0`. Old packages write `/` for `OR`.
struct Expression {
    /// The last comes first.
    words: Vec<String>,
}

impl Expression {
    /// Whether a user can comply with licences of the list alone. None: it cannot be read.
    fn is_allowed(text: &str) -> Option<bool> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words = spaced.split_whitespace().rev().map(str::to_owned).collect();
        let mut expression = Self { words };
        let allowed = expression.any()?;
        expression.words.is_empty().then_some(allowed)
    }

    fn any(&mut self) -> Option<bool> {
        let mut allowed = self.all()?;
        while self.takes("OR") {
            allowed |= self.all()?;
        }
        Some(allowed)
    }

    fn all(&mut self) -> Option<bool> {
        let mut allowed = self.one()?;
        while self.takes("AND") {
            allowed &= self.one()?;
        }
        Some(allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let allowed = self.any()?;
            return self.takes(")").then_some(allowed);
        }
        let mut licence = self.words.pop().filter(|word| !["OR", "AND", "WITH", ")"].contains(&word.as_str()))?;
        if self.takes("WITH") {
            licence = format!("{licence} WITH {}", self.words.pop()?);
        }
        Some(ALLOWED.contains(&licence.as_str()))
    }

    fn takes(&mut self, word: &str) -> bool {
        self.words.pop_if(|next| next == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expression_is_allowed_when_the_list_alone_satisfies_it() {
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert_eq!(Expression::is_allowed(allowed), Some(true), "{allowed}");
        }
        for refused in ["GPL-3.0", "MIT AND GPL-3.0", "MPL-2.0", "Apache-2.0 WITH Some-exception"] {
            assert_eq!(Expression::is_allowed(refused), Some(false), "{refused}");
        }
        for unreadable in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "AND"] {
            assert_eq!(Expression::is_allowed(unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn package_without_an_allowed_licence_is_named_with_its_version() {
        let package = |license: Option<&str>| Package {
            name: "left-pad".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
        };
        assert_eq!(package(Some("MIT")).problem(), None);
        assert_eq!(package(None).problem().as_deref(), Some("left-pad 1.0.0 names no licence"));
        let refused = package(Some("GPL-3.0")).problem().unwrap();
        assert_eq!(refused, "left-pad 1.0.0 has licence \"GPL-3.0\", which is not among those allowed");
    }
}
