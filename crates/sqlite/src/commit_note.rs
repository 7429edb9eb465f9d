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
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use dacapo_store::{StoreError, private_file};

use crate::counters::{Counters, StoreId};

/// The id, the count and a checksum over both.
const SIZE: usize = 16 + 8 + 4;

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
        let (content, sum) = bytes.split_last_chunk::<4>()?;
        let (store, count) = content.split_first_chunk::<16>()?;
        let noted = Self { store: *store, commits: u64::from_le_bytes(*count.first_chunk()?) };
        (crc32fast::hash(content) == u32::from_le_bytes(*sum)).then_some(noted)
    }

    fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..16].copy_from_slice(&self.store);
        bytes[16..24].copy_from_slice(&self.commits.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// The note of a database that is served.
pub(crate) struct CommitNote(File);

impl CommitNote {
    /// The note beside this database. None if there can be none: the store is served without one.
    pub(crate) fn open(database: &str) -> Option<Self> {
        private_file().create(true).truncate(false).write(true).open(path(database)).ok().map(Self)
    }

    /// Notes that these commits are durable. A note that cannot be written is an old one.
    pub(crate) fn write(&self, counters: &Counters) {
        let noted = Noted { store: counters.store, commits: counters.commits };
        let _ = write_at_start(&self.0, &noted.to_bytes());
    }
}

#[cfg(unix)]
fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(not(unix))]
fn write_at_start(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)
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
