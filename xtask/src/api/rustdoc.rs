//! Rustdoc's JSON of a crate.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::cargo;

/// Set while this program stands in for rustdoc.
const STANDS_IN: &str = "XTASK_STANDS_IN_FOR_RUSTDOC";

/// What rustdoc says of one crate.
#[derive(Deserialize)]
pub(super) struct Doc {
    pub(super) root: u64,
    pub(super) index: BTreeMap<u64, Item>,
    pub(super) paths: BTreeMap<u64, Known>,
}

/// A public item.
#[derive(Deserialize)]
pub(super) struct Item {
    pub(super) name: Option<String>,
    pub(super) visibility: Value,
    pub(super) inner: Value,
}

/// Where an item of this or another crate is defined.
#[derive(Deserialize)]
pub(super) struct Known {
    pub(super) path: Vec<String>,
    pub(super) kind: String,
}

impl Item {
    /// What kind of item it is, and the rest.
    pub(super) fn kind(&self) -> (&str, &Value) {
        let kind = self.inner.as_object().and_then(|inner| inner.iter().next());
        kind.map_or(("", &Value::Null), |(kind, rest)| (kind.as_str(), rest))
    }

    pub(super) fn is_public(&self) -> bool {
        self.visibility == "public"
    }
}

impl Doc {
    /// Documents a package with all features.
    pub(super) fn of(root: &Path, package: &str) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut command = cargo::command(root);
        cargo::forget_target_folder(&mut command);
        // Only rustdoc itself is told to allow its unstable output: as a variable of cargo's it would have dependencies built again.
        command.env("RUSTDOC", own).env(STANDS_IN, "1");
        command.args(["rustdoc", "--quiet", "--lib", "--all-features", "--package", package, "--"]);
        command.args(["-Zunstable-options", "--output-format=json", "--cap-lints=allow"]);
        let documented = command.status().context("cannot start `cargo rustdoc`")?;
        ensure!(documented.success(), "`cargo rustdoc --package {package}` failed");
        let path = root.join("target/doc").join(format!("{}.json", package.replace('-', "_")));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| anyhow!("rustdoc writes another form of JSON: {error}"))
    }

    pub(super) fn item(&self, id: &Value) -> Option<&Item> {
        self.index.get(&id.as_u64()?)
    }

    /// The item that is defined at this path.
    pub(super) fn find(&self, path: &[String]) -> Option<(u64, &Item)> {
        let id = self.paths.iter().find(|(_, known)| known.path == path).map(|(id, _)| *id)?;
        Some((id, self.index.get(&id)?))
    }
}

/// Runs the real rustdoc if cargo has started this program as rustdoc.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    std::env::var_os(STANDS_IN)?;
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove(STANDS_IN)
        .status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
