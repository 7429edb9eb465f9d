//! A row by which the last commit is recognised: the row exists if the commit does. Only rows that stay until their run
//! is deleted are of use. A commit that deletes a run is recognised by its count instead.

use rusqlite::{Connection, OptionalExtension};

use dacapo_store::StoreError;

use crate::store_error::store_error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastRow {
    Run(i64),
    Turn { run: i64, turn: i64 },
    Message(i64),
}

impl LastRow {
    /// Returns the row's kind and two numbers, as the note has them.
    pub(crate) fn code(row: Option<Self>) -> [u64; 3] {
        match row {
            None => [0, 0, 0],
            Some(Self::Run(no)) => [1, no as u64, 0],
            Some(Self::Turn { run, turn }) => [2, run as u64, turn as u64],
            Some(Self::Message(no)) => [3, no as u64, 0],
        }
    }

    /// Returns the row of these numbers. A kind that this build does not know is none.
    pub(crate) fn of_code([kind, first, second]: [u64; 3]) -> Option<Self> {
        match kind {
            1 => Some(Self::Run(first as i64)),
            2 => Some(Self::Turn { run: first as i64, turn: second as i64 }),
            3 => Some(Self::Message(first as i64)),
            _ => None,
        }
    }

    pub(crate) fn is_in(self, connection: &Connection) -> Result<bool, StoreError> {
        let (sql, first, second) = match self {
            Self::Run(no) => ("SELECT 1 FROM runs WHERE no = ?1 AND ?2 = 0", no, 0),
            Self::Turn { run, turn } => ("SELECT 1 FROM turns WHERE run = ?1 AND turn = ?2", run, turn),
            Self::Message(no) => ("SELECT 1 FROM messages WHERE no = ?1 AND ?2 = 0", no, 0),
        };
        let found = connection.query_row(sql, [first, second], |row| row.get::<_, i64>(0)).optional();
        found.map(|found| found.is_some()).map_err(store_error)
    }
}
