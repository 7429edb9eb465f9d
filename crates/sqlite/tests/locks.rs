//! The lock on the database file itself, which holds under every path of the file. Only Linux has it.
#![cfg(target_os = "linux")]

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dacapo_sqlite::SqliteStore;
use dacapo_store::{Filter, ReadRuns, StoreError, Upkeep, Writes};
use tempfile::TempDir;

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").to_str().unwrap().to_owned();
    (folder, path)
}

fn refusal(path: &str) -> String {
    match SqliteStore::open(path) {
        Err(StoreError::Busy(why)) => why,
        Err(other) => panic!("{other} is another refusal"),
        Ok(_) => panic!("it must not open"),
    }
}

/// A second path of a file, until it is dropped.
struct BindMount(PathBuf);

impl BindMount {
    /// None, with the reason on the standard error stream, where this process may not mount.
    fn new(file: &str, path: &Path) -> Option<Self> {
        fs::write(path, "").unwrap();
        let mount = Command::new("mount").arg("--bind").arg(file).arg(path).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(path.to_owned())),
            Ok(output) => {
                eprintln!("cannot mount here: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                eprintln!("cannot mount here: {error}");
                None
            }
        }
    }
}

impl Drop for BindMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A database file that was bind-mounted under a second path was served twice, and 450 of 919 acknowledged runs were lost.
/// Where nothing may be mounted, `file_that_another_descriptor_has_locked_is_read_but_not_served` shows the lock alone.
#[test]
fn file_with_a_second_path_by_a_bind_mount_is_served_once() {
    let (folder, path) = folder();
    let serving = SqliteStore::open(&path).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let second = elsewhere.join("store.db");
    let Some(_mount) = BindMount::new(&path, &second) else { return };
    let second = second.to_str().unwrap();
    let refused = refusal(second);
    assert!(refused.contains("this process holds the lock on") && refused.contains(second), "{refused}");
    let lock = Command::new("flock").args(["--nonblock", second, "true"]).status();
    assert!(!lock.unwrap().success(), "another process must not get the lock either");
    let left: Vec<_> = fs::read_dir(&elsewhere).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["store.db"], "a refused open leaves nothing beside the file");
    serving.close().unwrap();
    SqliteStore::open(second).expect("a closed store lets others serve the file");
    // Before the mount ends: SQLite closes the descriptors of a file together.
    drop(serving);
}

#[test]
fn file_that_another_descriptor_has_locked_is_read_but_not_served() {
    let (folder, path) = folder();
    SqliteStore::open(&path).unwrap().close().unwrap();
    let other = File::open(&path).unwrap();
    other.lock().unwrap();
    let refused = refusal(&path);
    let holder =
        format!("this process holds the lock on {path} and serves it, perhaps under another path (a bind mount)");
    assert!(refused.starts_with(&holder), "{refused}");
    assert!(refused.contains("`Dacapo::connect`"), "{refused}");
    let reading = SqliteStore::open_read_only(&path).unwrap();
    assert_eq!(reading.count(&Filter::default(), u64::MAX).unwrap(), 0);
    reading.back_up(&folder.path().join("copy.db")).unwrap();
    drop(reading);
    // A child process that another test is about to start shares the descriptor for a moment, and so the lock.
    other.unlock().unwrap();
    SqliteStore::open(&path).unwrap();
}

#[test]
fn served_file_is_locked_until_its_store_is_closed_or_dropped() {
    let (_folder, path) = folder();
    let is_locked = || matches!(File::open(&path).unwrap().try_lock(), Err(TryLockError::WouldBlock));
    let store = SqliteStore::open(&path).unwrap();
    let reading = SqliteStore::open_read_only(&path).unwrap();
    assert!(is_locked());
    store.close().unwrap();
    assert!(!is_locked(), "closed");
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert!(is_locked());
    drop(store);
    assert!(!is_locked(), "dropped, as a process that dies does");
    assert_eq!(reading.count(&Filter::default(), u64::MAX).unwrap(), 0);
}

/// POSIX drops SQLite's locks when any descriptor of the file is closed. The descriptor of the lock is shared, so that a store
/// that is dropped leaves the locks of another one alone.
#[test]
fn dropping_a_store_keeps_the_locks_of_another_on_the_same_file() {
    let (_folder, path) = folder();
    let serving = SqliteStore::open(&path).unwrap();
    let reading = SqliteStore::open_read_only(&path).unwrap();
    reading.count(&Filter::default(), u64::MAX).unwrap();
    let (device, number) = (fs::metadata(&path).unwrap().dev(), fs::metadata(&path).unwrap().ino());
    let file = format!(" {:02x}:{:02x}:{number} ", rustix::fs::major(device), rustix::fs::minor(device));
    let has_locks = || {
        // A reading can miss a lock while others come and go.
        let read = || fs::read_to_string("/proc/locks").unwrap();
        (0..20).any(|_| read().lines().any(|line| line.contains("POSIX") && line.contains(&file)))
    };
    assert!(has_locks(), "SQLite locks a file that it reads");
    serving.close().unwrap();
    drop(serving);
    assert!(has_locks(), "the store that reads still has its locks");
    drop(reading);
    assert!(!has_locks());
}
