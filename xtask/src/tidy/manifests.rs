//! A crate is ready to be published, or says that it never is.

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;
use crate::tree::{Source, Tree};

/// What a published crate says of itself, in its manifest or by `workspace = true`.
const FIELDS: &[&str] =
    &["version", "edition", "rust-version", "license", "description", "keywords", "categories", "readme"];

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let Some(root) = tree.get("Cargo.toml") else { return Ok(findings) };
    let shared = read(root)?;
    for source in tree.files().filter(|source| source.file_name() == "Cargo.toml" && source.path != "Cargo.toml") {
        let manifest = read(source)?;
        let Some(package) = manifest.get("package").and_then(Value::as_table) else { continue };
        if package.get("publish").and_then(Value::as_bool) == Some(false) {
            continue;
        }
        let mut missing: Vec<String> =
            FIELDS.iter().filter(|field| !package.contains_key(**field)).map(|field| format!("`{field}`")).collect();
        if package.get("metadata").and_then(|metadata| metadata.get("docs")).is_none() {
            missing.push("`[package.metadata.docs.rs]`".to_owned());
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            if tree.get(&format!("{}/{licence}", source.folder())).is_none() {
                missing.push(format!("the file `{licence}`"));
            }
        }
        findings
            .extend(missing.into_iter().map(|what| Finding::new(source, 1, format!("a published crate needs {what}"))));
        findings.extend(without_version(source, &manifest, &shared));
    }
    Ok(findings)
}

/// Dependencies on crates of this tree that a registry could not resolve.
fn without_version(source: &Source, manifest: &Table, shared: &Table) -> Vec<Finding> {
    let table = shared.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let dependencies = targets.filter_map(Value::as_table).chain([manifest]);
    let dependencies =
        dependencies.flat_map(|of| ["dependencies", "build-dependencies"].map(|kind| of.get(kind))).flatten();
    let names = dependencies.filter_map(Value::as_table).flat_map(Table::keys);
    let is_path_only = |name: &&String| {
        let entry = table.and_then(|table| table.get(name.as_str())).and_then(Value::as_table);
        entry.is_some_and(|entry| entry.contains_key("path") && !entry.contains_key("version"))
    };
    let said = |name: &String| format!("`{name}` has a path and no version in the workspace's table");
    names.filter(is_path_only).map(|name| Finding::new(source, 1, said(name))).collect()
}

fn read(source: &Source) -> Result<Table> {
    source.text.parse().with_context(|| format!("cannot read {}", source.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn published_crate_that_lacks_metadata_licences_or_versions_is_found() {
        let whole = "[package]\nname = \"a\"\nversion = \"1.0.0\"\nedition = \"2024\"\nrust-version = \"1.89\"\nlicense = \"MIT\"
description = \"A.\"\nkeywords = []\ncategories = []\nreadme.workspace = true\n[package.metadata.docs.rs]\nall-features = true\n";
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\na = { path = \"a\", version = \"1.0.0\" }\nkit = { path = \"kit\" }\n",
            ),
            ("a/Cargo.toml", &format!("{whole}[dev-dependencies]\nkit.workspace = true\n")),
            ("a/LICENSE-MIT", ""),
            ("a/LICENSE-APACHE", ""),
            ("b/Cargo.toml", &whole.replace("readme.workspace = true\n", "\n")),
            ("b/LICENSE-MIT", ""),
            ("c/Cargo.toml", &format!("{whole}[dependencies]\na.workspace = true\nkit.workspace = true\n")),
            ("c/LICENSE-MIT", ""),
            ("c/LICENSE-APACHE", ""),
            ("kit/Cargo.toml", "[package]\nname = \"kit\"\npublish = false\n"),
        ]);
        let expected = [
            "b/Cargo.toml:1: a published crate needs `readme`",
            "b/Cargo.toml:1: a published crate needs the file `LICENSE-APACHE`",
            "c/Cargo.toml:1: `kit` has a path and no version in the workspace's table",
        ];
        assert_eq!(shown(&find(&tree).unwrap()), expected);
    }
}
