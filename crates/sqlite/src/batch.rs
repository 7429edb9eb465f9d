//! Committing a group: one transaction, one flush.

use rusqlite::Connection;

use dacapo_store::{Batch, StoreError, Write, Written, apply};

use crate::tables::Tables;
use crate::trouble::trouble;

type Answer = Result<Written, StoreError>;

pub(crate) struct FileBatch {
    connection: Connection,
    /// Set when a commit's outcome is unknown. Nothing is written after that: whoever goes on must read first.
    broken: Option<StoreError>,
}

impl FileBatch {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, broken: None }
    }

    /// Applies all writes in one transaction. An error is that of the whole group.
    fn transact(&mut self, writes: &[Write]) -> Result<Vec<Answer>, StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(trouble)?;
        let mut tables = Tables(&self.connection);
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
        match self.connection.execute_batch("COMMIT").map_err(trouble) {
            Ok(()) => Ok(answers),
            Err(full @ StoreError::Full(_)) => {
                self.roll_back();
                Err(full)
            }
            Err(error) => {
                // A flush that failed once may "succeed" when it is asked again, with the data gone.
                let unknown = StoreError::Unavailable(format!("the outcome of a commit is unknown: {error}"));
                self.broken = Some(unknown.clone());
                Err(unknown)
            }
        }
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // Nothing was committed; a connection that cannot roll back either fails the next transaction.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Batch for FileBatch {
    fn close(&mut self) {
        self.broken.get_or_insert(StoreError::Unavailable("this process has ended writing".to_owned()));
    }

    fn commit(&mut self, writes: &[Write]) -> Vec<Answer> {
        let all = |error: &StoreError| writes.iter().map(|_| Err(error.clone())).collect();
        if let Some(broken) = &self.broken {
            return all(broken);
        }
        match self.transact(writes) {
            Ok(answers) => answers,
            Err(error @ (StoreError::Full(_) | StoreError::Busy(_))) => all(&error),
            Err(error) if self.broken.is_some() || writes.len() == 1 => all(&error),
            // One write of the group cannot be applied: the others need not suffer for it.
            Err(_) => writes.iter().flat_map(|write| self.commit(std::slice::from_ref(write))).collect(),
        }
    }
}
