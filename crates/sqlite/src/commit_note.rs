//! The note of the last acknowledged commit, in a file beside the database: `orders.db-commits`.
//!
//! SQLite ends its log at the first page that does not fit, and treats a log that was removed as empty. In both cases
//! acknowledged commits are gone, and SQLite reports nothing. So each commit can be recognised in the database, by a
//! row that it has added or by its count. This note names the commit that was acknowledged last, outside the log. A
//! database that lacks that commit has lost commits.
//!
//! The note is written after the flush of the commit that it names and before any caller gets the answer to that
//! commit. It is never flushed itself. So it may be old or missing after a power loss, but it is never ahead of what is
//! durable. Nor is an old note wrong: the row that it names stays until its run is deleted, and a commit that deletes
//! is counted. A process that has only opened a file writes no note, because what it has read may be only in the
//! system's memory.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use dacapo_store::{StoreError, private_file};
use dacapo_sys::Slots;

use crate::counters::{Counters, StoreId};
use crate::last_row::LastRow;
use crate::store_error::store_error;

/// The number of the format, the last word of the note. A note of another number is read as none.
const FORMAT: u64 = 1;
/// The number of slots: the store; the count and the kind of the row; its two numbers; a checksum over all of that and the
/// number of the format.
const SLOTS: usize = 4;
const SIZE: usize = SLOTS * 16;

/// The last commit that was acknowledged, and the store that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    store: StoreId,
    counted: u64,
    /// The row of that commit. None if the commit was counted.
    row: Option<LastRow>,
}

impl Noted {
    /// Reads the note in this file. None if there is no file, or if the note is torn.
    fn read(path: &Path) -> Option<Self> {
        let mut bytes = [0; SIZE];
        File::open(path).ok()?.read_exact(&mut bytes).ok()?;
        let (store, rest) = bytes.split_first_chunk::<16>()?;
        let (words, _) = rest.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        let row = LastRow::of_code([word(1)?, word(2)?, word(3)?]);
        let noted = Self { store: *store, counted: word(0)?, row };
        (noted.slots().as_flattened() == bytes).then_some(noted)
    }

    fn slots(&self) -> [[u8; 16]; SLOTS] {
        let [kind, first, second] = LastRow::code(self.row);
        let pair = |first: u64, second: u64| {
            let mut slot = [0; 16];
            slot[..8].copy_from_slice(&first.to_le_bytes());
            slot[8..].copy_from_slice(&second.to_le_bytes());
            slot
        };
        let content = [self.store, pair(self.counted, kind), pair(first, second)];
        let mut sum = crc32fast::Hasher::new();
        content.iter().for_each(|slot| sum.update(slot));
        let [store, commit, row] = content;
        [store, commit, row, pair(sum.finalize().into(), FORMAT)]
    }
}

/// The note of a database that is served, in memory that is mapped to its file. Writing the file with every commit
/// would add one more change to what the flush of the log makes durable.
pub(crate) struct CommitNote(Slots);

impl CommitNote {
    /// Opens the note beside this database. None if that is not possible: the store is then served without a note.
    pub(crate) fn open(database: &str) -> Option<Self> {
        let file = private_file().create(true).truncate(false).read(true).write(true).open(path(database));
        Slots::map(&mut file.ok()?, SLOTS).ok().map(Self)
    }

    /// Notes that a commit is durable. It has added this row, or is the last one that was counted.
    pub(crate) fn write(&self, counters: &Counters, row: Option<LastRow>) {
        let noted = Noted { store: counters.store, counted: counters.counted, row };
        noted.slots().into_iter().enumerate().for_each(|(at, slot)| self.0.set(at, slot));
    }
}

fn path(database: &str) -> PathBuf {
    // The file's real name: a link to the database has no note of its own.
    let database = std::fs::canonicalize(database).unwrap_or_else(|_| PathBuf::from(database));
    let mut path = database.into_os_string();
    path.push("-commits");
    PathBuf::from(path)
}

/// Removes the note of a database that was removed, together with its log, before a new one is made in its place:
/// removing a database on purpose needs no further step. A database whose file or log is left is compared with its
/// note.
pub(crate) fn forget_removed(database: &str) {
    let is_removed = std::fs::symlink_metadata(database).is_err();
    // After a shutdown the log is empty.
    let has_log = std::fs::metadata(format!("{database}-wal")).is_ok_and(|log| log.len() > 0);
    if is_removed && !has_log {
        let _ = std::fs::remove_file(path(database));
    }
}

/// Compares a Dacapo database, or an empty one, with the note beside it. The note of another store is ignored.
///
/// # Errors
/// [`StoreError::Lost`] if the database lacks the commit that the note names.
pub(crate) fn check(connection: &Connection, database: &str) -> Result<(), StoreError> {
    let path = path(database);
    // The note first: the process that serves the file may commit meanwhile.
    let Some(noted) = Noted::read(&path) else { return Ok(()) };
    let lost = || {
        let note = path.display();
        Err(StoreError::Lost(format!(
            "{database} lacks the last commit that was acknowledged, as {note} says. Its log {database}-wal, or the file itself, was \
             removed, replaced or damaged. Put the right files back; or remove {note} to accept the loss, as when a backup was restored"
        )))
    };
    // One snapshot for all reads: the process that serves the file may delete the row between two reads.
    let _snapshot = connection.unchecked_transaction().map_err(store_error)?;
    // A store's tables are made before the first commit that is noted.
    let Some(found) = Counters::read(connection)? else { return lost() };
    if found.store != noted.store || found.counted > noted.counted {
        return Ok(());
    }
    let is_there = match noted.row {
        Some(row) => found.counted == noted.counted && row.is_in(connection)?,
        None => found.counted == noted.counted,
    };
    if is_there { Ok(()) } else { lost() }
}

#[cfg(test)]
mod tests {
    use dacapo_testkit::assert_golden;

    use super::*;

    #[test]
    fn note_of_a_commit_is_what_its_number_says() {
        let rows = [
            ("counted", None),
            ("run", Some(LastRow::Run(1 << 10))),
            ("turn", Some(LastRow::Turn { run: 1 << 10, turn: 7 })),
            ("message", Some(LastRow::Message(9))),
        ];
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.db-commits");
        let line = |(name, row): &(&str, Option<LastRow>)| {
            let noted = Noted { store: *b"store-of-16-byte", counted: 3, row: *row };
            let bytes = noted.slots().as_flattened().to_vec();
            std::fs::write(&file, &bytes).unwrap();
            assert_eq!(Noted::read(&file), Some(noted), "{name}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{name} {hex}\n")
        };
        let written: String = rows.iter().map(line).collect();
        assert_golden(env!("CARGO_MANIFEST_DIR"), "commit-note", FORMAT, "hex", &written);
    }

    #[test]
    fn note_of_another_number_is_read_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.db-commits");
        let mut bytes = Noted { store: [0; 16], counted: 0, row: None }.slots().as_flattened().to_vec();
        bytes[SIZE - 8] = 2;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(Noted::read(&file), None);
    }
}
