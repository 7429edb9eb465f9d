//! The core depends on a short list of crates that only encode data, and on nothing that runs, stores or talks.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::cargo;
use crate::tidy::Finding;
use crate::tree::Tree;

const MANIFEST: &str = "crates/core/Cargo.toml";

/// A crate joins this list only with a reason that survives review.
const ALLOWED: &[&str] = &["bytes", "crc32fast", "minicbor", "serde", "serde_json", "smallvec", "thiserror"];

/// Crates that must not be reached through any of them either.
const NEVER: &[&str] =
    &["tokio", "async-std", "smol", "mio", "hyper", "reqwest", "tonic", "sqlx", "rusqlite", "tracing", "log", "rand"];

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(manifest) = tree.get(MANIFEST) else {
        return Ok(vec![Finding::at(MANIFEST, 1, "the core has no manifest")]);
    };
    let mut findings = direct(&manifest.text)?;
    findings.extend(reached(&dependency_tree(tree)?));
    Ok(findings)
}

fn direct(manifest: &str) -> Result<Vec<Finding>> {
    let manifest: Table = manifest.parse().context(MANIFEST)?;
    let table = manifest.get("dependencies").and_then(Value::as_table);
    let named: BTreeSet<&str> = table.into_iter().flat_map(Table::keys).map(String::as_str).collect();
    let allowed: BTreeSet<&str> = ALLOWED.iter().copied().collect();
    let extra = named.difference(&allowed).map(|name| format!("`{name}` is not on the core's list"));
    let spare = allowed.difference(&named).map(|name| format!("`{name}` is on the core's list and no longer used"));
    Ok(extra.chain(spare).map(|text| Finding::at(MANIFEST, 1, text)).collect())
}

fn dependency_tree(tree: &Tree) -> Result<String> {
    let args = ["tree", "--package", "dacapo-core", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let output = cargo::command(&tree.root).args(args).output().context("cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn reached(listing: &str) -> Vec<Finding> {
    let names: BTreeSet<&str> = listing.lines().filter_map(|line| line.split(' ').next()).collect();
    let found = NEVER.iter().filter(|never| names.contains(*never));
    found.map(|name| Finding::at(MANIFEST, 1, format!("`{name}` is reached through a dependency"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn the_core_names_exactly_the_list() {
        let manifest = "[dependencies]\nbytes.workspace = true\ncrc32fast.workspace = true\nminicbor.workspace = true\nserde.workspace = true
serde_json.workspace = true\nsmallvec.workspace = true\nlog.workspace = true\n[dev-dependencies]\ntokio = \"1\"\n";
        let expected = [
            "crates/core/Cargo.toml:1: `log` is not on the core's list",
            "crates/core/Cargo.toml:1: `thiserror` is on the core's list and no longer used",
        ];
        assert_eq!(shown(&direct(manifest).unwrap()), expected);
    }

    #[test]
    fn a_runtime_behind_a_dependency_is_found() {
        let listing = "dacapo-core v0.1.0 (/a)\nbytes v1.12.0\ntokio v1.54.0\n";
        assert_eq!(shown(&reached(listing)), ["crates/core/Cargo.toml:1: `tokio` is reached through a dependency"]);
    }
}
