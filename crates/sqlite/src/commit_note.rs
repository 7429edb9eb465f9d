//! The note of the last acknowledged commit, in a file beside the database: `orders.db-commits`.
//!
//! SQLite ends its log at the first page that does not fit, and a log that was removed is an empty one; in both cases acknowledged
//! commits are gone, and SQLite says nothing. So each commit is counted in the database, and the count is noted here, outside the
//! log. A database that is behind its note has lost commits.
//!
//! The note is written after the flush of the commit that it names and before anybody is told of that commit, and it is never
//! flushed itself. So it may be old or missing after a power loss, but it is never ahead of what is durable. A process that has only
//! opened a file writes no note: what it has read may be in the system's memory alone.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use dacapo_store::{StoreError, private_file};
use dacapo_sys::Slots;

use crate::counters::{Counters, StoreId};

/// The id; then the count, and a checksum over both.
const SIZE: usize = 32;

/// The last commit that was acknowledged, and the store that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    store: StoreId,
    commits: u64,
}

impl Noted {
    /// The note under this name. None if there is none, or if it is torn.
    fn read(path: &Path) -> Option<Self> {
        let mut bytes = [0; SIZE];
        File::open(path).ok()?.read_exact(&mut bytes).ok()?;
        let (store, record) = bytes.split_first_chunk::<16>()?;
        let noted = Self { store: *store, commits: u64::from_ne_bytes(*record.first_chunk()?) };
        (noted.record() == *record).then_some(noted)
    }

    /// The count and the checksum.
    fn record(&self) -> [u8; 16] {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.store);
        sum.update(&self.commits.to_ne_bytes());
        let mut record = [0; 16];
        record[..8].copy_from_slice(&self.commits.to_ne_bytes());
        record[8..].copy_from_slice(&u64::from(sum.finalize()).to_ne_bytes());
        record
    }
}

/// The note of a database that is served, in memory that is mapped to its file: a write of the file with every commit would add
/// one more change to what the flush of the log makes durable.
pub(crate) struct CommitNote(Slots);

impl CommitNote {
    /// The note beside this database. None if there can be none: the store is served without one.
    pub(crate) fn open(database: &str) -> Option<Self> {
        let file = private_file().create(true).truncate(false).read(true).write(true).open(path(database));
        Slots::map(&mut file.ok()?, SIZE / 16).ok().map(Self)
    }

    /// Notes that these commits are durable.
    pub(crate) fn write(&self, counters: &Counters) {
        let noted = Noted { store: counters.store, commits: counters.commits };
        self.0.set(0, noted.store);
        self.0.set(1, noted.record());
    }
}

fn path(database: &str) -> PathBuf {
    // By its real name: a link to the database has no note of its own.
    let database = std::fs::canonicalize(database).unwrap_or_else(|_| PathBuf::from(database));
    let mut path = database.into_os_string();
    path.push("-commits");
    PathBuf::from(path)
}

/// Removes the note of a database that was removed, together with its log, before a new one is made in its place: a database
/// that is removed on purpose needs no further step. One whose file or log is left is compared with its note.
pub(crate) fn forget_removed(database: &str) {
    let is_removed = std::fs::symlink_metadata(database).is_err();
    // After a shutdown the log is empty.
    let has_log = std::fs::metadata(format!("{database}-wal")).is_ok_and(|log| log.len() > 0);
    if is_removed && !has_log {
        let _ = std::fs::remove_file(path(database));
    }
}

/// Compares a database that is ours, or empty, with the note beside it. The note of another store counts as none.
///
/// # Errors
/// [`StoreError::Lost`] if the database is behind.
pub(crate) fn check(connection: &Connection, database: &str) -> Result<(), StoreError> {
    let path = path(database);
    // The note first: the process that serves the file may commit meanwhile.
    let Some(noted) = Noted::read(&path) else { return Ok(()) };
    let lost = |found: String| {
        let note = path.display();
        Err(StoreError::Lost(format!(
            "{database} {found}, and {} were acknowledged as {note} says. Its log {database}-wal, or the file itself, was removed, \
             replaced or damaged. Put the right files back; or remove {note} to accept the loss, as when a backup was restored",
            noted.commits
        )))
    };
    match Counters::read(connection)? {
        Some(found) if found.store == noted.store && found.commits < noted.commits => {
            lost(format!("has {} commits", found.commits))
        }
        // Its tables are made before the first commit that counts.
        None => lost("has none of its commits".to_owned()),
        Some(_) => Ok(()),
    }
}
