//! Backups of the file, and checks of it. Both have a connection of their own, so that commits do not wait for them.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row};

use dacapo_store::{Nodes, StoreError, Upkeep, private_file};

use crate::backup_files::{BackupFiles, FileSystem};
use crate::counters::Counters;
use crate::row::{attribute, deleted_run, message, task, timer};
use crate::store_error::store_error;
use crate::{SqliteStore, commit_note, schema};

/// The answer of SQLite's integrity check when it finds no problem.
const SOUND: &str = "ok";

impl SqliteStore {
    /// Writes a backup with these file operations.
    ///
    /// # Errors
    /// If the backup cannot be made. Then there is no file.
    pub fn back_up_on(&self, to: &Path, files: &dyn BackupFiles) -> Result<(), StoreError> {
        let failed = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", to.display()));
        if to.exists() {
            let there = format!(
                "{} is there already, and a backup replaces nothing: choose another name, or remove it first",
                to.display()
            );
            return Err(StoreError::Unsupported(there));
        }
        // Under another name until it is whole and durable, so that half a copy is never taken for a backup.
        let mut part = to.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let _ = std::fs::remove_file(&part);
        // SQLite treats an empty file as one that does not exist, and keeps its mode.
        private_file().create_new(true).write(true).open(&part).map_err(failed)?;
        let name = part.to_str().ok_or_else(|| StoreError::Unsupported("the path is no text".to_owned()))?;
        let copied = schema::connect_to_read(&self.path)
            .and_then(|reader| copy(&reader, name).map_err(store_error))
            .and_then(|()| files.flush(&part).and_then(|()| files.rename(&part, to)).map_err(failed));
        if copied.is_err() {
            let _ = std::fs::remove_file(&part);
            return copied;
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        files.flush_folder(folder).map_err(failed)
    }
}

/// Copies the database without a flush: the caller flushes the copy once, when it is whole.
fn copy(reader: &Connection, to: &str) -> rusqlite::Result<()> {
    reader.execute_batch("PRAGMA synchronous = OFF")?;
    reader.execute("VACUUM INTO ?", [to]).map(drop)
}

/// The lease of a file lets one process serve it.
impl Nodes for SqliteStore {}

impl Upkeep for SqliteStore {
    fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        self.back_up_on(to, &FileSystem)
    }

    fn has_backup(&self) -> bool {
        true
    }

    fn problems(&self) -> Result<Vec<String>, StoreError> {
        let reader = schema::connect_to_read(&self.path)?;
        let mut statement = reader.prepare("PRAGMA integrity_check").map_err(store_error)?;
        let found = statement.query_map([], |row| row.get::<_, String>(0)).map_err(store_error)?;
        let found: Vec<String> = found.collect::<Result<_, _>>().map_err(store_error)?;
        let mut problems: Vec<String> = found.into_iter().filter(|problem| problem != SOUND).collect();
        problems.extend(problem(commit_note::check(&reader, &self.path))?);
        problems.extend(problem(Counters::read(&reader))?);
        // Runs and turns are not scanned here: `verify` reads them one by one, and knows what they mean.
        let mut scan = |table: &str, columns: &str, read: fn(&Row<'_>) -> Result<(), StoreError>| {
            problems.extend(damaged_rows(&reader, &format!("SELECT {columns} FROM {table}"), read)?);
            Ok::<_, StoreError>(())
        };
        scan("messages", message::COLUMNS, |row| message::read(row).map(drop))?;
        scan("tasks", task::COLUMNS, |row| task::read(row).map(drop))?;
        scan("timers", timer::COLUMNS, |row| timer::read(row).map(drop))?;
        scan("attributes", attribute::COLUMNS, |row| attribute::read(row).map(drop))?;
        scan("garbage", deleted_run::COLUMNS, |row| deleted_run::read(row).map(drop))?;
        Ok(problems)
    }
}

/// Returns the rows of a query that do not match their checksums.
fn damaged_rows(
    reader: &Connection,
    sql: &str,
    read: fn(&Row<'_>) -> Result<(), StoreError>,
) -> Result<Vec<String>, StoreError> {
    let mut statement = reader.prepare(sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    let mut problems = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        problems.extend(problem(read(row))?);
    }
    Ok(problems)
}

/// Returns damage as a problem to report. Other errors stay errors.
fn problem<T>(checked: Result<T, StoreError>) -> Result<Option<String>, StoreError> {
    match checked {
        Ok(_) => Ok(None),
        Err(StoreError::Lost(what) | StoreError::Corrupt(what)) => Ok(Some(what)),
        Err(error) => Err(error),
    }
}
