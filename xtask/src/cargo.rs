//! Cargo, started from the root of a tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The cargo that runs us, so that a toolchain chosen on the command line holds for every step.
pub(crate) fn command(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Fails if a program that does not ask for this feature of `dacapo` compiles a package whose name contains the feature's.
pub(crate) fn default_build_lacks(root: &Path, feature: &str) -> Result<()> {
    let output = command(root)
        .args(["tree", "-p", "dacapo", "--edges", "normal,build", "--prefix", "none"])
        .output()
        .context("cannot start `cargo tree`")?;
    ensure!(output.status.success(), "`cargo tree` failed: {}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let found: Vec<&str> = tree.lines().filter(|line| line.contains(feature)).collect();
    ensure!(
        found.is_empty(),
        "the default build of dacapo depends on {}: keep it behind the feature `{feature}`",
        found.join(", ")
    );
    Ok(())
}

/// Removes what cargo told this program about its own package: dependencies that look at it would be built again.
pub(crate) fn forget_caller(command: &mut Command) {
    let told = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| told(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command.env_remove("CARGO_TARGET_DIR");
}
