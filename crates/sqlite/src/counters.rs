//! The counters of a store, one row that each commit writes: how many commits there are, and which number the next row gets.
//!
//! Numbers of runs, tasks and messages are given once. SQLite would give the number of a deleted row again, and a caller that still
//! holds it would then mean another row.

use rusqlite::{Connection, OptionalExtension, params};

use dacapo_store::StoreError;

use crate::sum::{Part, Sum};
use crate::trouble::trouble;

/// The id of a store: random, and the same in all copies of its file.
pub(crate) type StoreId = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) store: StoreId,
    pub(crate) commits: u64,
    /// The number of the next row.
    next: i64,
}

impl Counters {
    /// The counters of a database; none if it has no tables yet, or none that count commits.
    pub(crate) fn read(connection: &Connection) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT count(*) FROM pragma_table_info('numbers') WHERE name = 'commits'";
        if connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(trouble)? == 0 {
            return Ok(None);
        }
        let Some((counters, stored)) = Self::stored(connection)? else { return Ok(None) };
        counters.sum().check(stored, || "the row that counts its commits".to_owned())?;
        Ok(Some(counters))
    }

    fn stored(connection: &Connection) -> Result<Option<(Self, i64)>, StoreError> {
        let row = connection.query_row("SELECT store, commits, next, sum FROM numbers", [], |row| {
            let counters = Self { store: row.get(0)?, commits: row.get::<_, i64>(1)? as u64, next: row.get(2)? };
            Ok((counters, row.get(3)?))
        });
        row.optional().map_err(trouble)
    }

    /// Computes the checksum of the row anew.
    pub(crate) fn seal(connection: &Connection) -> Result<(), StoreError> {
        Self::stored(connection)?.map_or(Ok(()), |(counters, _)| counters.write(connection))
    }

    /// A number that no row has had, for a row of this transaction. If that is rolled back, so must be these counters.
    pub(crate) fn take(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    /// Writes the row.
    pub(crate) fn write(&self, connection: &Connection) -> Result<(), StoreError> {
        let sql = "UPDATE numbers SET commits = ?, next = ?, sum = ?";
        let mut statement = connection.prepare_cached(sql).map_err(trouble)?;
        let row = params![self.commits as i64, self.next, self.sum().finish()];
        statement.execute(row).map(drop).map_err(trouble)
    }

    fn sum(&self) -> Sum {
        Sum::of(Part::Numbers, self.next).number(self.commits as i64).bytes(&self.store)
    }
}
