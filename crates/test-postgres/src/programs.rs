//! The programs of a PostgreSQL server: from PATH, else from Debian's folders, else from Debian's package.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::user::is_root;

/// Where Debian keeps the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";

const ADVICE: &str = "no PostgreSQL server is installed: install one, for example by `apt-get install postgresql`, or add the folder of \
                      `initdb` and `postgres` to PATH";

/// The two programs that are needed.
pub(crate) struct Programs {
    pub(crate) initdb: PathBuf,
    pub(crate) postgres: PathBuf,
}

impl Programs {
    /// Finds the programs. Installs them if this is root on a Debian system that lacks them.
    pub(crate) fn get() -> Result<Self> {
        if let Some(found) = Self::find() {
            return Ok(found);
        }
        ensure!(is_root()? && Path::new("/usr/bin/apt-get").exists(), "{ADVICE}");
        println!("postgres: installing Debian's package `postgresql`");
        let install = ["install", "--yes", "--quiet", "--no-install-recommends", "postgresql"];
        let status = Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(install).status();
        ensure!(status.context("cannot start `apt-get`")?.success(), "`apt-get install postgresql` failed: {ADVICE}");
        Self::find().context(ADVICE)
    }

    fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).chain(debian_folders()).find_map(|folder| Self::of(&folder))
    }

    /// The programs of a folder, if it has both.
    fn of(folder: &Path) -> Option<Self> {
        let programs = Self { initdb: folder.join("initdb"), postgres: folder.join("postgres") };
        (programs.initdb.is_file() && programs.postgres.is_file()).then_some(programs)
    }
}

/// Debian's folders of programs, the newest version first.
fn debian_folders() -> Vec<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, folder)| folder).collect()
}
