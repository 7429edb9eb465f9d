//! The files that belong to a store that is served. If one of them is removed, replaced or given a second name meanwhile, what is
//! written from then on would be lost, so a store looks at them before every commit.

use std::path::{Path, PathBuf};

use dacapo_store::StoreError;

use crate::file_lock::FileLock;
use crate::inode::{Inode, names};
use crate::lease::Lease;

/// The files of a store, as they were when it was opened.
pub(crate) struct ServedFiles {
    database: PathBuf,
    file: Inode,
    lease: PathBuf,
    lease_file: Inode,
}

impl ServedFiles {
    /// The files as they are now.
    ///
    /// # Errors
    /// If they are not as they must be for serving.
    pub(crate) fn new(database: &str, lease: &Lease, lock: &FileLock) -> Result<Self, StoreError> {
        let trouble = |error: std::io::Error| StoreError::Unavailable(format!("{database}: {error}"));
        // The program may change its working directory.
        let absolute = |path: &Path| std::path::absolute(path).map_err(trouble);
        let files = Self {
            database: absolute(Path::new(database))?,
            file: lock.inode(),
            lease: absolute(lease.path())?,
            lease_file: lease.inode().map_err(trouble)?,
        };
        files.check()?;
        Ok(files)
    }

    /// Whether they are still as they were.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let name = self.database.display();
        let wrong = |what: String| Err(StoreError::Unavailable(what));
        let Some(found) = std::fs::metadata(&self.database).ok().filter(|found| Inode::from(found) == self.file) else {
            return wrong(format!(
                "{name} was removed or replaced while it was served; nothing more is written. What was acknowledged before \
                 is in the file that was removed"
            ));
        };
        if names(&found) > 1 {
            return wrong(format!(
                "{name} has {} names (hard links), and a process that serves it by another would undo what this one does; \
                 nothing is written. Remove the other names (`find -samefile {name}` finds them), and start again",
                names(&found)
            ));
        }
        if Inode::at(&self.lease) != Some(self.lease_file) {
            return wrong(format!(
                "{} was removed or replaced while {name} was served; nothing more is written here. What was acknowledged is in \
                 the file",
                self.lease.display()
            ));
        }
        Ok(())
    }
}
