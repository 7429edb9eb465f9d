//! The folder of a server or a pooler: its data, its log and its socket.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::user::{User, is_open_to_all};

/// How the name of each folder begins.
const PREFIX: &str = "dacapo-postgres-";
/// A socket's path has at most 107 bytes. The server adds `/.s.PGSQL.65535.lock` to the folder's.
const LONGEST_PATH: usize = 80;
/// The file in which a pooler notes its process.
pub(crate) const PID_OF_POOLER: &str = "pooler.pid";
/// How long a server that was left behind may take to end.
const END: Duration = Duration::from_secs(10);

/// A folder that no other process uses. It is removed when this is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    /// Locked for as long as the folder is used.
    _lock: File,
}

impl Folder {
    /// Makes a new folder in this one, or in the one for temporary files if the server's user cannot reach it there. Removes what processes
    /// that were killed left behind.
    pub(crate) fn create(parent: &Path, user: Option<User>) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let parent = parent.canonicalize()?;
        let is_short = parent.as_os_str().len() + PREFIX.len() + 16 < LONGEST_PATH;
        let parent = match is_short && (user.is_none() || is_open_to_all(&parent)) {
            true => parent,
            false => std::env::temp_dir(),
        };
        remove_left_behind(&parent);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{count}", std::process::id()));
        // The lock's file is beside the folder, so that the folder and the lock on it appear together for other processes.
        let lock = File::create(lock_of(&path)).with_context(|| format!("cannot write to {}", parent.display()))?;
        lock.lock()?;
        DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let folder = Self { path, _lock: lock };
        user.map_or(Ok(()), |user| user.own(&folder.path))?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Opens the log of the server to add to it.
    pub(crate) fn open_log(&self) -> Result<File> {
        let log = self.path.join("log");
        let opened = OpenOptions::new().create(true).append(true).open(&log);
        opened.with_context(|| format!("cannot open {}", log.display()))
    }

    /// Reads the end of the log, for errors.
    pub(crate) fn last_lines_of_log(&self) -> String {
        let text = fs::read_to_string(self.path.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Returns what the server says of itself.
    pub(crate) fn state(&self) -> Option<State> {
        State::read(&self.data())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::remove_file(lock_of(&self.path));
    }
}

/// The file `postmaster.pid`, by which the server's own tools follow it.
pub(crate) struct State {
    pub(crate) pid: u32,
    pub(crate) is_ready: bool,
}

impl State {
    fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    /// The first line is the id of the process, the eighth its state.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self { pid: lines.first()?.parse().ok()?, is_ready: lines.get(7) == Some(&"ready") })
    }
}

fn lock_of(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// Ends the servers and removes the folders of processes that were killed. What cannot be removed stays.
fn remove_left_behind(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_folder = name.to_str().is_some_and(|name| name.starts_with(PREFIX)) && entry.path().is_dir();
        if is_folder && is_left_behind(&entry.path()).unwrap_or(false) {
            let (folder, data) = (entry.path(), entry.path().join("data"));
            end_process(State::read(&data).map(|state| state.pid), &data);
            end_process(pid_of_pooler(&folder), &folder);
            let _ = fs::remove_dir_all(entry.path());
            let _ = fs::remove_file(lock_of(&entry.path()));
        }
    }
}

/// Returns whether no process holds the lock of a folder.
fn is_left_behind(folder: &Path) -> Result<bool> {
    let lock = OpenOptions::new().read(true).write(true).open(lock_of(folder))?;
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => bail!(error),
    }
}

/// Returns the process of the pooler that has its files in this folder.
fn pid_of_pooler(folder: &Path) -> Option<u32> {
    fs::read_to_string(folder.join(PID_OF_POOLER)).ok()?.trim().parse().ok()
}

/// Ends a process that was left behind, if it still runs: then it works in this folder.
fn end_process(pid: Option<u32>, folder: &Path) {
    let Some(pid) = pid else { return };
    if fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|works_in| works_in == folder) {
        process::signal("-QUIT", &[pid]);
        process::wait_until_ended(&[pid], END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_ready_when_the_eighth_line_says_so() {
        let text = |state: &str| format!("42\n/data\n1700000000\n5432\n/tmp\n127.0.0.1\n  5432001  0\n{state}\n");
        let read = |text: &str| State::parse(text).map(|state| (state.pid, state.is_ready));
        assert_eq!(read(&text("ready   ")), Some((42, true)));
        assert_eq!(read(&text("starting")), Some((42, false)));
        assert_eq!(read("42\n/data\n"), Some((42, false)));
        assert_eq!(read(""), None);
    }

    #[test]
    fn folder_of_a_process_that_is_gone_is_removed_and_others_stay() {
        let parent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-postgres-folder");
        let used = Folder::create(&parent, None).unwrap();
        let parent = used.path().parent().unwrap().to_owned();
        let left = parent.join(format!("{PREFIX}0-0"));
        fs::create_dir_all(&left).unwrap();
        fs::write(lock_of(&left), "").unwrap();
        let next = Folder::create(&parent, None).unwrap();
        assert!(!left.exists() && !lock_of(&left).exists());
        assert!(used.path().is_dir() && next.path().is_dir());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
