//! The right to serve a file: a lock on a file beside it, `orders.db-lease`. The operating system takes it back when the
//! process ends, however it ends. The database itself is never opened here: closing it again would drop SQLite's own locks.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use dacapo_store::StoreError;

/// Held for as long as this process serves a file.
pub(crate) struct Lease {
    lock: File,
    path: PathBuf,
}

impl Lease {
    /// Takes the lease of a database, or says who is in the way.
    pub(crate) fn take(database: &str) -> Result<Self, StoreError> {
        let of = Path::new(database);
        let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(StoreError::Unavailable(format!("{database}: there is no folder {}", folder.display())));
        }
        if of.is_symlink() && !of.exists() {
            return Err(StoreError::Unavailable(format!("{database} is a link to a file that is not there")));
        }
        // By its real name: a link must not let a second process in.
        let mut path = std::fs::canonicalize(of).unwrap_or_else(|_| of.to_owned()).into_os_string();
        path.push("-lease");
        let path = PathBuf::from(path);
        let unavailable = |error: std::io::Error| {
            StoreError::Unavailable(format!("{database} cannot be served: {}: {error}", path.display()))
        };
        loop {
            let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unavailable)?;
            match lock.try_lock() {
                // Somebody may have removed it since it was opened: then it is no longer the one that others would find.
                Ok(()) if Identity::at(&path) != Identity::of(&lock) => {}
                Ok(()) => return Ok(Self { lock, path }),
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Busy(format!(
                        "{database} is being served. One process serves a file at a time; open it read-only (`sqlite:{database}?mode=ro`) to look at it"
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(unavailable(error)),
            }
        }
    }

    /// Gives it back for a file that is not ours after all, and leaves nothing beside it.
    pub(crate) fn withdraw(self) {
        // While it is locked: whoever has it open already finds that it is gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Which file is served, under which name, by which lease. Somebody may remove any of them, or give the file a second name,
/// while it is served: what is written then would be lost.
pub(crate) struct Place {
    database: PathBuf,
    file: Identity,
    lease: PathBuf,
    lock: Identity,
}

impl Place {
    /// The file that is there now.
    pub(crate) fn of(database: &str, lease: &Lease) -> Result<Self, StoreError> {
        let trouble = |error: std::io::Error| StoreError::Unavailable(format!("{database}: {error}"));
        // The program may change its working directory.
        let absolute = |path: &Path| std::path::absolute(path).map_err(trouble);
        let gone = || trouble(std::io::ErrorKind::NotFound.into());
        let database = absolute(Path::new(database))?;
        let file = Identity::at(&database).ok_or_else(gone)?;
        let lock = Identity::of(&lease.lock).ok_or_else(gone)?;
        let place = Self { database, file, lease: absolute(&lease.path)?, lock };
        place.check()?;
        Ok(place)
    }

    /// Whether all is as it was.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let name = self.database.display();
        let wrong = |what: String| Err(StoreError::Unavailable(what));
        let Some(found) = std::fs::metadata(&self.database).ok().filter(|found| Identity::from(found) == self.file)
        else {
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
        if Identity::at(&self.lease) != Some(self.lock) {
            return wrong(format!(
                "{} was removed or replaced while {name} was served, so another process may serve it now; nothing more is \
                 written here. What was acknowledged is in the file",
                self.lease.display()
            ));
        }
        Ok(())
    }
}

/// What tells one file from another, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }

    fn of(file: &File) -> Option<Self> {
        file.metadata().ok().map(|metadata| Self::from(&metadata))
    }
}

#[cfg(unix)]
impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), number: metadata.ino() }
    }
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
impl From<&Metadata> for Identity {
    fn from(_: &Metadata) -> Self {
        Self { device: 0, number: 0 }
    }
}

/// How many names a file has.
#[cfg(unix)]
fn names(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names(_: &Metadata) -> u64 {
    1
}
