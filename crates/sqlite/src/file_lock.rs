//! The lock on the database file itself. The lease is beside a path, and one file may be reached by several paths, for
//! example by a bind mount. This lock (`flock`) is on the file, whatever its path.
//!
//! POSIX drops all record locks of a process on a file as soon as the process closes any descriptor of that file,
//! SQLite's locks included. So a process has one descriptor for each database file. All stores over the file share it,
//! and it is opened before SQLite's first descriptor and closed after the last. Nothing else in this crate may open a
//! database file.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use dacapo_store::{StoreError, private_file};
use dacapo_sync::{Mutex, ranks};

use crate::inode::Inode;

/// The database files that this process has open.
static OPEN: Mutex<BTreeMap<Inode, OpenFile>> = Mutex::new(ranks::OPEN_FILES, BTreeMap::new());

struct OpenFile {
    file: File,
    /// How many stores share the descriptor.
    stores: usize,
    is_served: bool,
}

/// A share of the process's descriptor for a database file. Each store has one and drops it after all its connections.
pub(crate) struct FileLock {
    inode: Inode,
    is_serving: bool,
}

impl FileLock {
    /// Opens the file for a store that serves it, and creates an empty one if there is none.
    pub(crate) fn open_or_create(path: &Path) -> io::Result<Self> {
        Self::share(path, |path| match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // SQLite gives the log and its index the mode of the file.
                private_file().create(true).truncate(false).write(true).open(path)
            }
            opened => opened,
        })
    }

    /// Opens the file for a store that reads it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::share(path, |path| File::open(path))
    }

    fn share(path: &Path, open: impl FnOnce(&Path) -> io::Result<File>) -> io::Result<Self> {
        // Held while a descriptor is opened or closed, so that a second one of the same file never exists.
        let mut all = OPEN.lock();
        let known = Inode::at(path).filter(|inode| all.contains_key(inode));
        let inode = match known {
            Some(inode) => inode,
            None => {
                let file = open(path)?;
                let inode = Inode::of(&file)?;
                all.insert(inode, OpenFile { file, stores: 0, is_served: false });
                inode
            }
        };
        all.entry(inode).and_modify(|open| open.stores += 1);
        Ok(Self { inode, is_serving: false })
    }

    /// Returns the identity of the file.
    pub(crate) fn inode(&self) -> Inode {
        self.inode
    }

    /// Locks the file for serving. `database` is its path, for the error.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if this process or another serves the file, under any path.
    pub(crate) fn lock(&mut self, database: &str) -> Result<(), StoreError> {
        let mut all = OPEN.lock();
        let open = all.get_mut(&self.inode).expect("a share keeps its file open");
        if open.is_served {
            return Err(busy(database, self.inode));
        }
        match try_lock(&open.file) {
            Ok(()) => {
                (open.is_served, self.is_serving) = (true, true);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(busy(database, self.inode)),
            Err(TryLockError::Error(error)) => {
                Err(StoreError::Unavailable(format!("{database} cannot be locked for serving: {error}")))
            }
        }
    }

    /// Lets other processes serve the file. It stays open, because this process may still read it.
    pub(crate) fn unlock(&mut self) {
        if let Some(open) = OPEN.lock().get_mut(&self.inode)
            && std::mem::take(&mut self.is_serving)
        {
            open.is_served = false;
            // Cannot fail for a lock that is held; if it did, the lock would end with the descriptor.
            let _ = open.file.unlock();
        }
    }
}

/// Returns whether a store of this process serves the file.
pub(crate) fn is_served_here(path: &Path) -> bool {
    Inode::at(path).is_some_and(|inode| OPEN.lock().get(&inode).is_some_and(|open| open.is_served))
}

impl Drop for FileLock {
    fn drop(&mut self) {
        self.unlock();
        let mut all = OPEN.lock();
        if let Some(open) = all.get_mut(&self.inode) {
            open.stores -= 1;
            if open.stores == 0 {
                // Closes the descriptor.
                all.remove(&self.inode);
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Does nothing: on other systems such a lock would conflict with SQLite's own, so only the lease beside the file
/// protects it.
#[cfg(not(target_os = "linux"))]
fn try_lock(_: &File) -> Result<(), TryLockError> {
    Ok(())
}

fn busy(database: &str, inode: Inode) -> StoreError {
    let process = match locking_process(inode) {
        Some(process) if process == std::process::id() => "this process".to_owned(),
        Some(process) => format!("process {process}"),
        None => "a process that cannot be seen from here, perhaps in another container,".to_owned(),
    };
    StoreError::Busy(format!(
        "{process} holds the lock on {database} and serves it, perhaps under another path (a bind mount). One process serves a \
         file at a time: stop that one first, or look at it with `Dacapo::connect`"
    ))
}

/// Returns the process that holds the lock on a file, if this process may see that.
#[cfg(target_os = "linux")]
fn locking_process(inode: Inode) -> Option<u32> {
    let (locks, file) = (std::fs::read_to_string("/proc/locks").ok()?, inode.in_proc_locks());
    // 1: FLOCK  ADVISORY  WRITE 4711 fe:00:10010689 0 EOF
    let process = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&file.as_str())).then(|| fields[4].parse().ok())?
    };
    locks.lines().find_map(process)
}

#[cfg(not(target_os = "linux"))]
fn locking_process(_: Inode) -> Option<u32> {
    None
}
