//! `cargo-mutants` itself, in the version that this tree asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;

const VERSION: &str = "27.1.0";

/// The program, installed into `target/tools` if it is not there yet.
pub(super) fn installed(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/tools").join(format!("cargo-mutants-{VERSION}"));
    let program = folder.join("bin/cargo-mutants").with_extension(std::env::consts::EXE_EXTENSION);
    if !program.exists() {
        println!("mutants: installing cargo-mutants {VERSION} into {}", folder.display());
        let mut install = cargo::command(root);
        install.args(["install", "--locked", "--version", VERSION, "--root"]).arg(&folder).arg("cargo-mutants");
        let status = install.status().context("cannot start `cargo install cargo-mutants`")?;
        if !status.success() || !program.exists() {
            bail!("cannot install cargo-mutants {VERSION}: `cargo install` failed ({status})");
        }
    }
    Ok(program)
}

/// `cargo mutants` in a folder.
pub(super) fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("mutants").current_dir(folder);
    command
}

/// Whether `cargo nextest` can be used.
pub(super) fn has_nextest(root: &Path) -> bool {
    let output = cargo::command(root).args(["nextest", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}
