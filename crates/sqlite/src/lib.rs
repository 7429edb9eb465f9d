//! The embedded store: one SQLite file, fully durable, committed in groups.
//!
//! One process serves a file at a time; the lock on a file beside it is that process's lease, and it ends with the
//! process, so the next one owns everything at once. Other processes may open the same file for reading.

mod batch;
mod ground;
mod lease;
mod numbers;
mod read;
mod running;
mod schema;
mod tables;
mod trouble;
mod tuning;
mod upkeep;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use dacapo_store::{Done, Group, StoreError, Write, Writes};

use batch::FileBatch;
use lease::{Lease, Place};
use running::RunningFile;
use trouble::naming;

pub use ground::Ground;
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
    /// Held for as long as this process serves the file.
    lease: Mutex<Option<Lease>>,
    /// None when the file is open for reading only, or when nothing can be noted.
    running: Option<Arc<RunningFile>>,
}

impl SqliteStore {
    /// Opens a file for serving, and makes it if it is not there. Only one process may.
    pub fn open(path: &str) -> Result<Self, StoreError> {
        Self::open_tuned(path, &Tuning::default())
    }

    /// The same, with a log that is kept short in another way.
    pub fn open_tuned(path: &str, tuning: &Tuning) -> Result<Self, StoreError> {
        let lease = Lease::take(path)?;
        match Self::connect(path, &lease, tuning) {
            Ok((batch, reader)) => Ok(Self {
                group: Some(Group::new(batch, GROUP)),
                reader: Mutex::new(reader),
                path: path.to_owned(),
                lease: Mutex::new(Some(lease)),
                running: RunningFile::open(path),
            }),
            Err(error) => {
                lease.withdraw();
                Err(naming(path, error))
            }
        }
    }

    fn connect(path: &str, lease: &Lease, tuning: &Tuning) -> Result<(FileBatch, Connection), StoreError> {
        let writer = schema::connect(path, false)?;
        // Before anything is written.
        let place = Place::of(path, lease)?;
        schema::prepare(&writer)?;
        schema::tune(&writer, tuning)?;
        let reader = schema::connect(path, true)?;
        Ok((FileBatch::new(writer, Some(place)), reader))
    }

    /// Opens a file for reading beside the process that serves it.
    pub fn open_read_only(path: &str) -> Result<Self, StoreError> {
        if !std::path::Path::new(path).exists() {
            return Err(StoreError::Unavailable(format!("there is no file {path}")));
        }
        let reader = schema::connect_to_read(path).map_err(|error| naming(path, error))?;
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

    fn close(&self) -> Result<(), StoreError> {
        let closed = self.group.as_ref().map_or(Ok(()), Group::close);
        if let Some(running) = &self.running {
            running.close();
        }
        // Only now: nothing more is written, so the next process may serve the file.
        drop(self.lease.lock().unwrap_or_else(PoisonError::into_inner).take());
        closed
    }
}
