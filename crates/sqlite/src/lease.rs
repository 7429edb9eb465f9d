//! The right to serve a database: a lock on a file beside it, `orders.db-lease`. The operating system releases it when
//! the process ends, however it ends. The lock on the database itself is in [`crate::file_lock`].

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use dacapo_store::{StoreError, private_file};

use crate::file_lock::is_served_here;
use crate::inode::Inode;

/// The lease of a database, held for as long as this process serves it.
pub(crate) struct Lease {
    lock: File,
    path: PathBuf,
}

impl Lease {
    /// Takes the lease of a database.
    pub(crate) fn take(database: &str) -> Result<Self, StoreError> {
        let of = Path::new(database);
        let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(StoreError::Unavailable(format!(
                "{database}: there is no folder {}; create it first",
                folder.display()
            )));
        }
        if of.is_dir() {
            return Err(StoreError::Unavailable(format!("{database} is a folder: name a file in it")));
        }
        if of.is_symlink() && !of.exists() {
            return Err(StoreError::Unavailable(format!("{database} is a link to a file that is not there")));
        }
        // The file's real name: a link must not let a second process in.
        let mut path = std::fs::canonicalize(of).unwrap_or_else(|_| of.to_owned()).into_os_string();
        path.push("-lease");
        let path = PathBuf::from(path);
        let unavailable = |error: io::Error| {
            StoreError::Unavailable(format!("{database} cannot be served: {}: {error}", path.display()))
        };
        loop {
            let lock = private_file().create(true).truncate(false).write(true).open(&path).map_err(unavailable)?;
            match lock.try_lock() {
                // The file may have been removed since it was opened. Then other processes would find another one.
                Ok(()) if Inode::at(&path) != Inode::of(&lock).ok() => {}
                Ok(()) => return Ok(Self { lock, path }),
                Err(TryLockError::WouldBlock) if is_served_here(of) => {
                    return Err(StoreError::Busy(format!(
                        "{database} is being served by this very process. A file is opened for serving once: use clones of that `App` or of its handles, or look at it with `Dacapo::connect`"
                    )));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Busy(format!(
                        "{database} is being served. One process serves a file at a time; look at it with `Dacapo::connect`, or end that process first"
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(unavailable(error)),
            }
        }
    }

    /// Returns the path of the locked file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of the locked file.
    pub(crate) fn inode(&self) -> io::Result<Inode> {
        Inode::of(&self.lock)
    }

    /// Gives the lease back, for a file that turns out not to be a Dacapo store, and removes the lease file.
    pub(crate) fn withdraw(self) {
        // While it is locked: a process that has it open already notices that it is gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A child process that this one is about to start shares the descriptor until its program begins. Closing ours alone would
        // leave the lease with that child for as long.
        let _ = self.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_ends_when_it_is_dropped_although_a_child_process_shares_its_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.db").to_str().unwrap().to_owned();
        let lease = Lease::take(&database).unwrap();
        let of_the_child = lease.lock.try_clone().unwrap();
        assert!(matches!(Lease::take(&database), Err(StoreError::Busy(_))));
        drop(lease);
        Lease::take(&database).map(drop).unwrap();
        drop(of_the_child);
    }
}
