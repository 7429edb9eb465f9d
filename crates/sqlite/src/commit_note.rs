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

use rusqlite::{Connection, OptionalExtension};

use dacapo_store::{StoreError, private_file};

use crate::trouble::trouble;

/// The id of a store: random, and the same in all copies of its file.
pub(crate) type StoreId = [u8; 16];

/// The id, the count and a checksum over both.
const SIZE: usize = 16 + 8 + 4;

/// How many commits a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commits {
    pub(crate) store: StoreId,
    pub(crate) count: u64,
}

impl Commits {
    /// The commits that a database has; none if it has no tables yet, or none that count commits.
    pub(crate) fn in_database(connection: &Connection) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT count(*) FROM pragma_table_info('numbers') WHERE name = 'commits'";
        if connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(trouble)? == 0 {
            return Ok(None);
        }
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, StoreId>(0)?, row.get::<_, i64>(1)?));
        let row = connection.query_row("SELECT store, commits FROM numbers", [], read).optional().map_err(trouble)?;
        Ok(row.map(|(store, count)| Self { store, count: count as u64 }))
    }

    /// The commits that are noted beside a database. None if there is no note, or if it is torn.
    fn noted(path: &Path) -> Option<Self> {
        let mut bytes = [0; SIZE];
        File::open(path).ok()?.read_exact(&mut bytes).ok()?;
        let (content, sum) = bytes.split_last_chunk::<4>()?;
        let (store, count) = content.split_first_chunk::<16>()?;
        let commits = Self { store: *store, count: u64::from_le_bytes(*count.first_chunk()?) };
        (crc32fast::hash(content) == u32::from_le_bytes(*sum)).then_some(commits)
    }

    fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..16].copy_from_slice(&self.store);
        bytes[16..24].copy_from_slice(&self.count.to_le_bytes());
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

    /// Notes that so many commits are durable. A note that cannot be written is an old one.
    pub(crate) fn write(&self, commits: Commits) {
        let _ = write_at_start(&self.0, &commits.to_bytes());
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

/// Compares a database that is ours, or empty, with the note beside it. The note of another store counts as none.
///
/// # Errors
/// [`StoreError::Lost`] if the database is behind.
pub(crate) fn check(connection: &Connection, database: &str) -> Result<(), StoreError> {
    let path = path(database);
    // The note first: the process that serves the file may commit meanwhile.
    let Some(noted) = Commits::noted(&path) else { return Ok(()) };
    let lost = |found: String| {
        let note = path.display();
        Err(StoreError::Lost(format!(
            "{database} {found}, and {} were acknowledged as {note} says. Its log {database}-wal, or the file itself, was removed, \
             replaced or damaged. Put the right files back; or remove {note} to accept the loss, as when a backup was restored",
            noted.count
        )))
    };
    match Commits::in_database(connection)? {
        Some(found) if found.store == noted.store && found.count < noted.count => {
            lost(format!("has {} commits", found.count))
        }
        // Its tables are made before the first commit that counts.
        None => lost("has none of its commits".to_owned()),
        Some(_) => Ok(()),
    }
}
