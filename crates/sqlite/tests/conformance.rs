//! The suite that every store must pass, on a file.

use std::ops::Deref;

use dacapo_sqlite::SqliteStore;
use dacapo_store::Store;
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
