//! Cargo, started from the root of a tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tree::{Source, Tree};

/// The cargo that runs us, so that a toolchain chosen on the command line holds for every step.
///
/// It does not learn what cargo told this program about its own package: dependencies that look at it, such as `ring`, would be built again
/// by every caller in turn.
pub(crate) fn command(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    let told = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| told(&name.to_string_lossy())) {
        command.env_remove(name);
    }
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

/// Fails if the lock file of a workspace in the tree, such as those of the bench's rivals, does not fit its manifests and those of the crates
/// that it depends on: `--locked` would refuse to build it. Downloads no package.
pub(crate) fn locks_are_current(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let stale: Vec<&str> = tree
        .files()
        .filter(|source| source.file_name() == "Cargo.lock")
        .map(Source::folder)
        .filter(|folder| {
            !lock_is_current(&root.join(folder), &["--offline"]) && !lock_is_current(&root.join(folder), &[])
        })
        .map(|folder| if folder.is_empty() { "." } else { folder })
        .collect();
    ensure!(stale.is_empty(), "stale lock files in {}: run `cargo update --workspace` there", stale.join(", "));
    Ok(())
}

/// Without the network, cargo knows those packages alone that it has heard of before.
fn lock_is_current(folder: &Path, how: &[&str]) -> bool {
    let output = command(folder).args(["update", "--workspace", "--locked", "--quiet"]).args(how).output();
    output.is_ok_and(|output| output.status.success())
}

/// For a build that goes to a folder of its own, or is that of another tree.
pub(crate) fn forget_target_folder(command: &mut Command) {
    command.env_remove("CARGO_TARGET_DIR");
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lock_file_that_lacks_a_dependency_of_a_crate_is_stale() {
        let root = std::env::temp_dir().join(format!("xtask-locks-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let package = |name: &str, more: &str| {
            format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n{more}\n[workspace]\n"
            )
        };
        write("one/Cargo.toml", &package("one", ""));
        write("one/src/lib.rs", "");
        write("two/Cargo.toml", &package("two", "three = { path = \"../three\" }"));
        write("two/src/lib.rs", "");
        write("three/Cargo.toml", &package("three", "").replace("[workspace]", ""));
        write("three/src/lib.rs", "");
        let locked = command(&root.join("two")).args(["generate-lockfile", "--offline"]).status().unwrap();
        assert!(locked.success());
        assert!(lock_is_current(&root.join("two"), &["--offline"]));
        write("three/Cargo.toml", &package("three", "one = { path = \"../one\" }").replace("[workspace]", ""));
        write("one/Cargo.toml", &package("one", "").replace("[workspace]", ""));
        let is_current = lock_is_current(&root.join("two"), &["--offline"]);
        fs::remove_dir_all(&root).unwrap();
        assert!(!is_current);
    }
}
