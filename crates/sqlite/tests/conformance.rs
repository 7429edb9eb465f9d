//! The suite that every store must pass, on a file.

use std::ops::Deref;

use dacapo_sqlite::SqliteStore;
use dacapo_store::Store;
use tempfile::TempDir;

/// A store in a folder that goes when it does.
struct Fresh(SqliteStore, #[expect(dead_code, reason = "held for its drop")] TempDir);

impl Fresh {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        Self(SqliteStore::open(path.to_str().unwrap()).unwrap(), folder)
    }
}

impl Deref for Fresh {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

dacapo_store::conformance_tests!(*Fresh::new());
