//! The suite that every store must pass, on a file.

use std::ops::Deref;

use dacapo_sqlite::SqliteStore;
use dacapo_store::{Nodes, Store, StoreError, Writes};
use tempfile::TempDir;

/// A store in a folder that goes when it does.
struct Fresh {
    store: SqliteStore,
    _folder: TempDir,
}

impl Fresh {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        Self { store: SqliteStore::open(path.to_str().unwrap()).unwrap(), _folder: folder }
    }
}

impl Deref for Fresh {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

dacapo_store::conformance_tests!(*Fresh::new());

/// The suite of several nodes does not apply: one process serves a file.
#[test]
fn a_second_node_is_refused_until_the_first_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").to_str().unwrap().to_owned();
    let first = SqliteStore::open(&path).unwrap();
    assert!(first.shared().is_none(), "it has no nodes");
    match SqliteStore::open(&path) {
        Err(StoreError::Busy(_)) => {}
        Err(other) => panic!("{other} is another refusal"),
        Ok(_) => panic!("a second process must not serve the file"),
    }
    first.close().unwrap();
    SqliteStore::open(&path).expect("the first has left");
}
