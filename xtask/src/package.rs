//! `package`: the published crates as archives, as a registry would get them, without publishing anything.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use crate::cargo;
use crate::tree::Tree;

/// Packages every published crate. Nothing is built.
pub(crate) fn quick(root: &Path) -> Result<()> {
    package(root, &["--no-verify"])
}

/// Reads the words of the command line: with `--verify`, what was packaged is built from its archives.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    match words {
        [] => quick(root),
        ["--verify"] => package(root, &[]),
        other => bail!("unknown words `{}`: package takes --verify", other.join(" ")),
    }
}

/// Cargo resolves dependencies among the packaged crates from the archives that it has just made, so none of them has to be in
/// a registry.
fn package(root: &Path, options: &[&str]) -> Result<()> {
    let names = published(root)?;
    let each = names.iter().flat_map(|name| ["--package", name]);
    // The gate is run on trees with changes as well.
    let mut command = cargo::command(root);
    command.args(["package", "--quiet", "--allow-dirty"]).args(options).args(each);
    ensure!(command.status().context("cannot start `cargo package`")?.success(), "`cargo package` failed");
    println!("{} crates are packaged in target/package: {}", names.len(), names.join(", "));
    Ok(())
}

/// The names of the crates that do not say `publish = false`.
fn published(root: &Path) -> Result<Vec<String>> {
    let tree = Tree::load(root)?;
    let mut names = Vec::new();
    for source in tree.files().filter(|source| source.file_name() == "Cargo.toml") {
        let manifest: Table = source.text.parse().with_context(|| format!("cannot read {}", source.path))?;
        let Some(package) = manifest.get("package") else { continue };
        let name = package.get("name").and_then(Value::as_str);
        if package.get("publish").and_then(Value::as_bool) != Some(false) {
            names.extend(name.map(str::to_owned));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_users_depend_on_are_published_and_tools_are_not() {
        let names = published(&crate::root()).unwrap();
        assert!(names.iter().any(|name| name == "dacapo") && names.iter().any(|name| name == "dacapo-testkit"));
        let tools = ["xtask", "dacapo-bench", "dacapo-bench-meter", "dacapo-faults", "dacapo-test-postgres"];
        for own in tools.iter().chain(&["dacapo-examples", "dacapo-shop"]) {
            assert!(!names.iter().any(|name| name == own), "{own}");
        }
    }
}
