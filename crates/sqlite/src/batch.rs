//! Committing a group: one transaction, one flush.

use rusqlite::Connection;

use dacapo_store::{Batch, StoreError, Write, Written, apply};

use crate::commit_note::CommitNote;
use crate::counters::Counters;
use crate::served_files::ServedFiles;
use crate::store_error::store_error;
use crate::tables::Tables;

type WriteResult = Result<Written, StoreError>;

pub(crate) struct FileBatch {
    connection: Connection,
    /// Set when a commit's outcome is unknown. Nothing is written after that: the engine must read the store first.
    broken: Option<StoreError>,
    counters: Counters,
    /// None where no file is served.
    files: Option<ServedFiles>,
    /// None where no file is served, or where the note cannot be written.
    note: Option<CommitNote>,
}

impl FileBatch {
    /// Creates a batch for a database that has these counters, with the files that are served and the note beside them.
    pub(crate) fn new(
        connection: Connection,
        counters: Counters,
        served: Option<(ServedFiles, Option<CommitNote>)>,
    ) -> Self {
        let (files, note) = served.map_or((None, None), |(files, note)| (Some(files), note));
        Self { connection, broken: None, counters, files, note }
    }

    /// Runs a statement that stays prepared for all commits.
    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(store_error)
    }

    /// Applies all writes in one transaction. An error fails the whole group.
    fn transact(&mut self, writes: &[Write]) -> Result<Vec<WriteResult>, StoreError> {
        self.run("BEGIN IMMEDIATE")?;
        let mut tables = Tables::new(&self.connection, self.counters);
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            match apply(&mut tables, write) {
                Err(error) if !matches!(error, StoreError::Refused(_)) => {
                    self.roll_back();
                    return Err(error);
                }
                answer => answers.push(answer),
            }
        }
        let (mut counters, row) = tables.changed();
        // A commit that cannot be recognised by a row is counted; so is one that may have removed the row of an earlier
        // commit.
        if row.is_none() || counters.has_reserved_since(&self.counters) {
            counters.counted += u64::from(row.is_none());
            if let Err(error) = counters.write(&self.connection) {
                self.roll_back();
                return Err(error);
            }
        }
        match self.run("COMMIT") {
            Ok(()) => {
                self.counters = counters;
                // The commit is flushed, and no submitter has its answer yet.
                if let Some(note) = &self.note {
                    note.write(&counters, row);
                }
                Ok(answers)
            }
            Err(full @ StoreError::Full(_)) => {
                self.roll_back();
                Err(full)
            }
            Err(error) => {
                // A flush that failed once may "succeed" when it is tried again, with the data gone.
                let unknown = StoreError::Unavailable(format!("the outcome of a commit is unknown: {error}"));
                self.broken = Some(unknown.clone());
                Err(unknown)
            }
        }
    }

    /// Checks that the file is still in its place, and that this process may write it.
    fn check_files(&mut self) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let checked = files.check().and_then(|()| files.check_log(|| self.empty_log()));
        if let Err(gone) = &checked {
            self.broken = Some(gone.clone());
        }
        checked
    }

    /// Moves all of the log into the database. Returns whether that was possible.
    fn empty_log(&self) -> bool {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let moved = self.connection.query_row("PRAGMA wal_checkpoint(FULL)", [], read);
        moved.is_ok_and(|(is_busy, pages, moved): (bool, i64, i64)| !is_busy && pages == moved)
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // Nothing was committed; a connection that cannot roll back either fails the next transaction.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Batch for FileBatch {
    fn close(&mut self) -> Result<(), StoreError> {
        if self.broken.is_some() {
            // The last submitter got the error.
            return Ok(());
        }
        let checked = self.check_files();
        if checked.is_ok() {
            // Moves the log into the file itself, so that the file alone is a copy of everything. If that is not
            // possible now, the next process does it.
            let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        }
        self.broken.get_or_insert(StoreError::Unavailable("this process has ended writing".to_owned()));
        checked
    }

    fn commit(&mut self, writes: &[Write]) -> Vec<WriteResult> {
        let all = |error: &StoreError| writes.iter().map(|_| Err(error.clone())).collect();
        if let Some(broken) = &self.broken {
            return all(broken);
        }
        if let Err(gone) = self.check_files() {
            return all(&gone);
        }
        match self.transact(writes) {
            Ok(answers) => answers,
            Err(error @ (StoreError::Full(_) | StoreError::Locked(_))) => all(&error),
            Err(error) if self.broken.is_some() || writes.len() == 1 => all(&error),
            // One write of the group cannot be applied: the others are committed one by one.
            Err(_) => writes.iter().flat_map(|write| self.commit(std::slice::from_ref(write))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use dacapo_store::NewRun;
    use dacapo_store::conformance::order;

    fn start(number: usize) -> Write {
        Write::Start(Box::new(NewRun { start: vec![1; 2_000], ..order(number) }))
    }

    fn batch(connection: Connection) -> FileBatch {
        let counters = Counters::read(&connection).unwrap().unwrap();
        FileBatch::new(connection, counters, None)
    }

    fn count(batch: &FileBatch) -> i64 {
        batch.connection.query_row("SELECT count(*) FROM runs", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_full_disk_refuses_whole_groups_loses_nothing_and_is_forgotten_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let connection = schema::connect(folder.path().join("store.db").to_str().unwrap(), false).unwrap();
        schema::prepare(&connection).unwrap();
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        connection.query_row(&format!("PRAGMA max_page_count = {}", pages + 8), [], |_| Ok(())).unwrap();
        let mut batch = batch(connection);
        let mut kept = 0;
        let full = loop {
            let group = [start(kept), start(kept + 1)];
            let answers = batch.commit(&group);
            match &answers[0] {
                Ok(_) => kept += 2,
                Err(error) => break error.clone(),
            }
        };
        assert!(matches!(full, StoreError::Full(_)), "{full}");
        assert_eq!(count(&batch), kept as i64, "what was acknowledged is there, and nothing else");
        batch.connection.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(())).unwrap();
        assert!(batch.commit(&[start(kept), start(kept + 1)]).iter().all(Result::is_ok));
        assert_eq!(count(&batch), kept as i64 + 2);
    }

    #[test]
    fn after_a_commit_of_unknown_outcome_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = schema::connect(folder.path().join("store.db").to_str().unwrap(), false).unwrap();
        schema::prepare(&connection).unwrap();
        // A commit hook that objects is the nearest thing to a failed flush. Older versions of rusqlite return nothing
        // here.
        let _ = connection.commit_hook(Some(|| true));
        let mut batch = batch(connection);
        let unknown = batch.commit(&[start(0)]).remove(0).unwrap_err();
        assert!(unknown.to_string().contains("the outcome of a commit is unknown"), "{unknown}");
        let _ = batch.connection.commit_hook(None::<fn() -> bool>);
        assert_eq!(batch.commit(&[start(1)]), [Err(unknown)], "the next writer must read first");
        assert_eq!(count(&batch), 0);
    }
}
