//! The modes of the files that a store makes: only their owner may read them.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use dacapo_sqlite::SqliteStore;
use dacapo_store::{Doing, RunNo, RunningNotes, Upkeep, Write, Writes};

/// The names of the files in a folder with their modes, in the order of their names.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let mode = |file: fs::DirEntry| (file.file_name().into_string().unwrap(), file.metadata().unwrap().mode() & 0o777);
    let mut modes: Vec<_> = files.map(mode).collect();
    modes.sort();
    modes
}

#[test]
fn files_of_a_store_and_its_backup_are_created_with_mode_0600() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(path.to_str().unwrap()).unwrap();
    store.submit(Write::Sweep { most: 1 }, Box::new(|written| drop(written.unwrap())));
    store.began(Doing::Run(RunNo(1))).unwrap();
    store.back_up(&folder.path().join("copy.db")).unwrap();
    let expected = [
        "copy.db",
        "store.db",
        "store.db-commits",
        "store.db-lease",
        "store.db-running",
        "store.db-shm",
        "store.db-wal",
    ];
    assert_eq!(modes(folder.path()), expected.map(|name| (name.to_owned(), 0o600)));
}

#[test]
fn file_that_is_there_keeps_its_mode_and_its_log_gets_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let store = SqliteStore::open(path.to_str().unwrap()).unwrap();
    store.submit(Write::Sweep { most: 1 }, Box::new(|written| drop(written.unwrap())));
    let modes = modes(folder.path());
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert!(modes.contains(&(name.to_owned(), 0o640)), "{name}: {modes:?}");
    }
}
