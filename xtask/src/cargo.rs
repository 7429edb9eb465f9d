//! Cargo, started from the root of a tree.

use std::path::Path;
use std::process::Command;

/// The cargo that runs us, so that a toolchain chosen on the command line holds for every step.
pub(crate) fn command(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}
