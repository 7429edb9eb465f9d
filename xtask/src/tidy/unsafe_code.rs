//! No crate that users run may use `unsafe`, without which no thread can be killed and no memory be spoilt; but for the one
//! that speaks C.

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;
use crate::tree::{Source, Tree};

/// SQLite calls it, in C.
const SPEAKS_C: &str = "crates/vfs/Cargo.toml";

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let manifests = tree.files().filter(|source| source.file_name() == "Cargo.toml" && source.path != SPEAKS_C);
    let lax = manifests.map(|source| Ok((!forbids(source)?).then(|| Finding::new(source, 1, "does not forbid it"))));
    lax.filter_map(Result::transpose).collect()
}

fn forbids(source: &Source) -> Result<bool> {
    let manifest: Table = source.text.parse().with_context(|| format!("cannot read {}", source.path))?;
    if manifest.get("package").and_then(|package| package.get("publish")).and_then(Value::as_bool) == Some(false) {
        return Ok(true);
    }
    let of_workspace = manifest.get("workspace").and_then(Value::as_table);
    let Some(lints) = of_workspace.unwrap_or(&manifest).get("lints") else { return Ok(false) };
    let inherits = lints.get("workspace").and_then(Value::as_bool) == Some(true);
    let forbids = lints.get("rust").and_then(|rust| rust.get("unsafe_code")).and_then(Value::as_str) == Some("forbid");
    Ok(inherits || forbids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_crate_that_allows_it_is_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"),
            ("a/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("b/Cargo.toml", "[lints.rust]\nunsafe_code = \"forbid\"\n"),
            ("c/Cargo.toml", "[lints.rust]\nunsafe_code = \"deny\"\n"),
            ("d/Cargo.toml", "[package]\nname = \"d\"\n"),
            ("e/Cargo.toml", "[package]\nname = \"e\"\npublish = false\n"),
        ]);
        let expected = ["c/Cargo.toml:1: does not forbid it", "d/Cargo.toml:1: does not forbid it"];
        assert_eq!(shown(&find(&tree).unwrap()), expected);
        assert_eq!(find(&Tree::of(&[("Cargo.toml", "[workspace]\nmembers = []\n")])).unwrap().len(), 1);
    }
}
