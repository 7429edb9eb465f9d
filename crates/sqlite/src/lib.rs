//! The embedded store: one SQLite file, fully durable, committed in groups.
//!
//! One process serves a file at a time; the lock on a file beside it is that process's lease, and it ends with the
//! process, so the next one owns everything at once. Other processes may open the same file for reading.

mod batch;
mod read;
mod running;
mod schema;
mod tables;
mod trouble;
mod upkeep;

use std::fs::{File, OpenOptions, TryLockError};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use dacapo_store::{Done, Group, StoreError, Write, Writes};

use batch::{FileBatch, Place};
use running::RunningFile;

/// The most writes that share one transaction.
const GROUP: usize = 1024;

/// A store in an SQLite file.
pub struct SqliteStore {
    /// None when the file is open for reading only.
    group: Option<Group<FileBatch>>,
    /// Reads do not wait for commits: they have a connection of their own.
    reader: Mutex<Connection>,
    path: String,
    /// Held for as long as this process serves the file.
    lease: Mutex<Option<File>>,
    /// None when the file is open for reading only, or when nothing can be noted.
    running: Option<RunningFile>,
}

impl SqliteStore {
    /// Opens a file for serving, and makes it if it is not there. Only one process may.
    pub fn open(path: &str) -> Result<Self, StoreError> {
        let lease = lease(path)?;
        let writer = schema::connect(path, false)?;
        schema::prepare(&writer)?;
        let reader = schema::connect(path, true)?;
        let group = Some(Group::new(FileBatch::new(writer, Place::of(path)), GROUP));
        let running = RunningFile::open(path);
        Ok(Self { group, reader: Mutex::new(reader), path: path.to_owned(), lease: Mutex::new(Some(lease)), running })
    }

    /// Opens a file for reading beside the process that serves it.
    pub fn open_read_only(path: &str) -> Result<Self, StoreError> {
        if !std::path::Path::new(path).exists() {
            return Err(StoreError::Unavailable(format!("there is no file {path}")));
        }
        let reader = schema::connect(path, true)?;
        schema::check(&reader)?;
        Ok(Self {
            group: None,
            reader: Mutex::new(reader),
            path: path.to_owned(),
            lease: Mutex::default(),
            running: None,
        })
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writes for SqliteStore {
    fn submit(&self, write: Write, done: Done) {
        match &self.group {
            Some(group) => group.submit(write, done),
            None => done(Err(StoreError::Busy("it is open for reading only".to_owned()))),
        }
    }

    fn close(&self) {
        if let Some(group) = &self.group {
            group.close();
        }
        if let Some(running) = &self.running {
            running.close();
        }
        // Only now: nothing more is written, so the next process may serve the file.
        drop(self.lease.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The right to serve a file. The operating system takes it back when the process ends, however it ends.
fn lease(path: &str) -> Result<File, StoreError> {
    let folder = std::path::Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(StoreError::Unavailable(format!("there is no folder {}", folder.display())));
    }
    // By its real name: a link must not let a second process in.
    let real = std::fs::canonicalize(path).map_or_else(|_| path.to_owned(), |real| real.display().to_string());
    let lock = format!("{real}-lease");
    let unavailable = |error: std::io::Error| StoreError::Unavailable(format!("{lock}: {error}"));
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock).map_err(unavailable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy(format!(
            "{path} is being served. One process serves a file at a time; open it read-only (`sqlite:{path}?mode=ro`) to look at it"
        ))),
        Err(TryLockError::Error(error)) => Err(unavailable(error)),
    }
}
