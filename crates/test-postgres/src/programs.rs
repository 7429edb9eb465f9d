//! The programs of the servers: from PATH, else from Debian's folders, else from Debian's packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::user::{User, is_root};

/// Where Debian keeps the programs of each version of PostgreSQL.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Where Debian keeps PgBouncer, and which is not in the PATH of every user.
const SBIN: &str = "/usr/sbin";

const POSTGRES: Package = Package {
    name: "postgresql",
    advice: "no PostgreSQL server is installed: install one, for example by `apt-get install postgresql`, or add the folder of \
             `initdb` and `postgres` to PATH",
};
const PGBOUNCER: Package = Package {
    name: "pgbouncer",
    advice: "PgBouncer is not installed: install it, for example by `apt-get install pgbouncer`, or add its folder to PATH",
};

/// A package of Debian.
struct Package {
    name: &'static str,
    /// The advice where it is neither found nor can be installed.
    advice: &'static str,
}

impl Package {
    /// Finds programs. Installs the package if this is root on a Debian system that lacks them.
    fn get<T>(&self, find: impl Fn() -> Option<T>) -> Result<T> {
        if let Some(found) = find() {
            return Ok(found);
        }
        let Self { name, advice } = self;
        ensure!(is_root()? && Path::new("/usr/bin/apt-get").exists(), "{advice}");
        println!("postgres: installing Debian's package `{name}`");
        // A fresh machine has no list of packages, or an old one.
        let installed = apt_get(&["install", "--yes", "--quiet", "--no-install-recommends", name])?
            || apt_get(&["update", "--quiet"])?
                && apt_get(&["install", "--yes", "--quiet", "--no-install-recommends", name])?;
        ensure!(installed, "`apt-get install {name}` failed: {advice}");
        find().with_context(|| advice.to_string())
    }
}

/// Runs `apt-get`, and returns whether it succeeded. Another test may install something at this moment.
fn apt_get(words: &[&str]) -> Result<bool> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=300"]).args(words);
    Ok(command.status().context("cannot start `apt-get`")?.success())
}

/// The two programs of a PostgreSQL server.
pub(crate) struct Programs {
    pub(crate) initdb: PathBuf,
    pub(crate) postgres: PathBuf,
}

impl Programs {
    /// Finds or installs the programs.
    pub(crate) fn get() -> Result<Self> {
        POSTGRES.get(|| path().chain(debian_folders()).find_map(|folder| Self::of(&folder)))
    }

    /// The programs of a folder, if it has both.
    fn of(folder: &Path) -> Option<Self> {
        let programs = Self { initdb: folder.join("initdb"), postgres: folder.join("postgres") };
        (programs.initdb.is_file() && programs.postgres.is_file()).then_some(programs)
    }
}

/// Finds or installs PgBouncer.
pub(crate) fn pgbouncer() -> Result<PathBuf> {
    let folders = || path().chain([PathBuf::from(SBIN)]);
    PGBOUNCER.get(|| folders().map(|folder| folder.join("pgbouncer")).find(|program| program.is_file()))
}

/// A command that runs as the server's user, in a folder that this user can read.
pub(crate) fn command(program: &Path, folder: &Path, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    // Variables such as PGDATA and PGPORT of the calling process are not meant for this server.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    if let Some(user) = user {
        user.run(&mut command);
    }
    command
}

/// The folders of PATH.
fn path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect::<Vec<_>>().into_iter()
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
