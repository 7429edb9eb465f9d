//! There is one version table, in the workspace root. A dev-dependency may be a path alone: `cargo package` leaves it out, which
//! is what lets a crate be tested by one that depends on it.

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;
use crate::tree::{Source, Tree};

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for source in tree.files().filter(|source| source.file_name() == "Cargo.toml" && !source.folder().is_empty()) {
        let manifest: Table = source.text.parse().with_context(|| format!("cannot read {}", source.path))?;
        let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
        for table in targets.filter_map(Value::as_table).chain([&manifest]) {
            findings.extend(with_versions(source, table));
        }
    }
    Ok(findings)
}

fn with_versions(source: &Source, table: &Table) -> Vec<Finding> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let dependencies = kinds.iter().filter_map(|kind| Some((*kind, table.get(*kind)?.as_table()?)));
    let dependencies = dependencies.flat_map(|(kind, all)| all.iter().map(move |(name, value)| (kind, name, value)));
    let is_shared = |value: &Value| value.get("workspace").and_then(Value::as_bool) == Some(true);
    let is_path = |value: &Value| value.get("path").is_some() && value.get("version").is_none();
    let is_fine = |kind: &str, value: &Value| is_shared(value) || kind == "dev-dependencies" && is_path(value);
    let own = dependencies.filter(|(kind, _, value)| !is_fine(kind, value));
    own.map(|(_, name, _)| {
        let declares = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '=', '.']));
        let line = source.lines().find(|(_, line)| declares(line.trim())).map_or(1, |(line, _)| line);
        Finding::new(source, line, format!("`{name}` is not taken from the workspace's table"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_crate_that_names_a_version_is_found() {
        let crate_manifest = "[dependencies]\nbytes.workspace = true\nserde = { workspace = true, features = [\"rc\"] }
tokio = \"1\"\n[target.'cfg(unix)'.dev-dependencies]\nlibc = { version = \"0.2\" }
a-kit = { path = \"kit\" }\n[build-dependencies]\nb-kit = { path = \"kit\" }\n";
        let tree =
            Tree::of(&[("Cargo.toml", "[workspace.dependencies]\na = \"1\"\n"), ("a/Cargo.toml", crate_manifest)]);
        let expected = [
            "a/Cargo.toml:6: `libc` is not taken from the workspace's table",
            "a/Cargo.toml:4: `tokio` is not taken from the workspace's table",
            "a/Cargo.toml:9: `b-kit` is not taken from the workspace's table",
        ];
        assert_eq!(shown(&find(&tree).unwrap()), expected);
    }
}
