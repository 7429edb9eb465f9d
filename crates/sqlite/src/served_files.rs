//! The files of a store that is served. If one of them is removed, replaced or given a second name meanwhile, later
//! writes would be lost. So the store checks them before every commit.

use std::path::{Path, PathBuf};

use dacapo_store::StoreError;

use crate::file_lock::FileLock;
use crate::inode::{Inode, look};
use crate::lease::Lease;

/// The files of a store, as they were when it was opened.
pub(crate) struct ServedFiles {
    database: PathBuf,
    file: Inode,
    lease: PathBuf,
    lease_file: Inode,
    /// The log, once SQLite has made it.
    log: Option<(PathBuf, Inode)>,
}

impl ServedFiles {
    /// Records the files as they are now.
    ///
    /// # Errors
    /// If they are not as serving requires.
    pub(crate) fn new(database: &str, lease: &Lease, lock: &FileLock) -> Result<Self, StoreError> {
        let store_error = |error: std::io::Error| StoreError::Unavailable(format!("{database}: {error}"));
        // The program may change its working directory.
        let absolute = |path: &Path| std::path::absolute(path).map_err(store_error);
        let files = Self {
            database: absolute(Path::new(database))?,
            file: lock.inode(),
            lease: absolute(lease.path())?,
            lease_file: lease.inode().map_err(store_error)?,
            log: None,
        };
        files.check()?;
        Ok(files)
    }

    /// Records the log, which SQLite has open by now, so that it is checked too. SQLite never replaces it while it is
    /// open.
    pub(crate) fn watch_log(&mut self) -> Result<(), StoreError> {
        // SQLite puts the log beside the real file.
        let mut path = std::fs::canonicalize(&self.database).unwrap_or_else(|_| self.database.clone()).into_os_string();
        path.push("-wal");
        let path = PathBuf::from(path);
        let inode = Inode::at(&path);
        let missing = || StoreError::Unavailable(format!("{} is missing: SQLite has made no log", path.display()));
        let inode = inode.ok_or_else(missing)?;
        self.log = Some((path, inode));
        Ok(())
    }

    /// Checks that the files are still as they were.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let name = self.database.display();
        let wrong = |what: String| Err(StoreError::Unavailable(what));
        let Some((_, names)) = look(&self.database).filter(|(inode, _)| *inode == self.file) else {
            return wrong(format!(
                "{name} was removed or replaced while it was served; nothing more is written. What was acknowledged before \
                 is in the file that was removed"
            ));
        };
        if names > 1 {
            return wrong(format!(
                "{name} has {names} names (hard links), and a process that serves it by another would undo what this one does; \
                 nothing is written. Remove the other names (`find -samefile {name}` finds them), and start again"
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

    /// Checks that the log is still as it was. A log that was removed is still open in this process and can be moved
    /// into the database: `rescue` does that, and returns whether it did.
    pub(crate) fn check_log(&self, rescue: impl FnOnce() -> bool) -> Result<(), StoreError> {
        let Some((log, inode)) = &self.log else { return Ok(()) };
        let (is_removed, what) = match Inode::at(log) {
            Some(found) if found == *inode => return Ok(()),
            Some(_) => (false, "replaced"),
            None => (true, "removed"),
        };
        let (log, name) = (log.display(), self.database.display());
        let rest = match is_removed && rescue() {
            true => {
                format!("What was acknowledged was moved into {name}, so that nothing is lost: start the process again")
            }
            false => {
                "What was acknowledged last is in the log that was there: put it back before the file is served again"
                    .to_owned()
            }
        };
        Err(StoreError::Unavailable(format!(
            "{log} was {what} while {name} was served; nothing more is written. {rest}"
        )))
    }
}
