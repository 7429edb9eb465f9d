//! The embedded store: one SQLite file, fully durable, committed in groups.
//!
//! One process serves a file at a time. That process's lease is the lock on a file beside it, which ends with the
//! process, so that the next one owns everything at once. The file itself is locked too, because it may have several
//! paths. Other processes may open the same file for reading.

mod backup_files;
mod batch;
mod columns;
mod commit_note;
mod counters;
mod file_lock;
mod inode;
mod last_row;
mod lease;
mod read;
mod row;
mod running;
mod schema;
mod served_files;
mod store_error;
mod sum;
mod tables;
mod tuning;
mod upkeep;

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use dacapo_store::{Done, Group, RunningFile, StoreError, Write, Writes};
use dacapo_sync::{Mutex, MutexGuard, ranks};

use batch::FileBatch;
use commit_note::CommitNote;
use counters::Counters;
use file_lock::FileLock;
use lease::Lease;
use served_files::ServedFiles;
use store_error::{corrupt, naming};

pub use backup_files::BackupFiles;
pub use tuning::Tuning;

/// The most writes that share one transaction.
const GROUP: usize = 1024;

/// A store in an SQLite file.
pub struct SqliteStore {
    /// None when the file is open for reading only.
    group: Option<Group<FileBatch>>,
    /// Reads do not wait for commits: they have a connection of their own.
    reader: Mutex<Connection>,
    path: String,
    /// Dropped after the connections, because none of them may outlive it. None when the file is open for reading only
    /// and cannot be shared.
    lock: Mutex<Option<FileLock>>,
    /// The lease. None once this process no longer serves the file.
    lease: Mutex<Option<Lease>>,
    /// None when the file is open for reading only, or when notes cannot be written.
    running: Option<Arc<RunningFile>>,
}

impl SqliteStore {
    /// Opens a file for serving, and creates it if it does not exist. Only one process may serve it.
    pub fn open(path: &str) -> Result<Self, StoreError> {
        Self::open_tuned(path, &Tuning::default())
    }

    /// Opens a file for serving, with other limits for its log.
    pub fn open_tuned(path: &str, tuning: &Tuning) -> Result<Self, StoreError> {
        let lease = Lease::take(path)?;
        match Self::connect(path, &lease, tuning) {
            Ok((batch, reader, lock)) => Ok(Self {
                group: Some(Group::new(batch, GROUP)),
                reader: Mutex::new(ranks::STORE_READER, reader),
                path: path.to_owned(),
                lock: Mutex::new(ranks::FILE_LOCK, Some(lock)),
                lease: Mutex::new(ranks::LEASE, Some(lease)),
                running: running::open(path),
            }),
            Err(error) => {
                lease.withdraw();
                Err(naming(path, error))
            }
        }
    }

    fn connect(path: &str, lease: &Lease, tuning: &Tuning) -> Result<(FileBatch, Connection, FileLock), StoreError> {
        let cannot_open = |error| StoreError::Unavailable(format!("{path} cannot be opened: {error}"));
        commit_note::forget_removed(path);
        let mut lock = FileLock::open_or_create(Path::new(path)).map_err(cannot_open)?;
        // Before SQLite opens the file, and before anything is written.
        let mut files = ServedFiles::new(path, lease, &lock)?;
        lock.lock(path)?;
        let writer = schema::connect(path, false)?;
        // Another file may have taken its place meanwhile.
        files.check()?;
        schema::version(&writer)?;
        commit_note::check(&writer, path)?;
        schema::prepare(&writer)?;
        schema::tune(&writer, tuning)?;
        let counters = Counters::read(&writer)?.ok_or_else(|| corrupt("its commits are not counted"))?;
        // SQLite creates the log when it reads.
        files.watch_log()?;
        let reader = schema::connect(path, true)?;
        let batch = FileBatch::new(writer, counters, Some((files, CommitNote::open(path))));
        Ok((batch, reader, lock))
    }

    /// Opens a file for reading, also while another process serves it.
    pub fn open_read_only(path: &str) -> Result<Self, StoreError> {
        if !Path::new(path).exists() {
            return Err(StoreError::Unavailable(format!(
                "there is no file {path}: the program that serves it creates it"
            )));
        }
        if Path::new(path).is_dir() {
            return Err(StoreError::Unavailable(format!("{path} is a folder: name a file in it")));
        }
        let lock = FileLock::open(Path::new(path)).ok();
        let reader = schema::connect_to_read(path).map_err(|error| naming(path, error))?;
        Ok(Self {
            group: None,
            reader: Mutex::new(ranks::STORE_READER, reader),
            path: path.to_owned(),
            lock: Mutex::new(ranks::FILE_LOCK, lock),
            lease: Mutex::new(ranks::LEASE, None),
            running: None,
        })
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock()
    }
}

impl Writes for SqliteStore {
    fn submit(&self, write: Write, done: Done) {
        match &self.group {
            Some(group) => group.submit(write, done),
            None => done(Err(StoreError::Unsupported(
                "the store is open for reading only: open it without `mode=ro` in the process that serves it"
                    .to_owned(),
            ))),
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        let closed = self.group.as_ref().map_or(Ok(()), Group::close);
        if let Some(running) = &self.running {
            running.close();
        }
        // Only now: nothing more is written, so the next process may serve the file. It takes the lease first.
        if let Some(lock) = &mut *self.lock.lock() {
            lock.unlock();
        }
        drop(self.lease.lock().take());
        closed
    }
}
