//! The counters of a store, one row: the number of the next row, and how many commits have changed this row.
//!
//! Numbers of runs, tasks and messages are given once. SQLite would give the number of a deleted row again, and a
//! caller that still uses it would then mean another row. Numbers are reserved in blocks, so that most commits do not
//! write this row, which would be one more page to flush.

use rusqlite::{Connection, OptionalExtension, params};

use dacapo_store::{RunNo, Shard, StoreError};

use crate::store_error::store_error;
use crate::sum::{Part, Sum};

/// How many numbers are reserved at a time. The rest of a block stays unused when the process ends.
const BLOCK: i64 = 1 << 20;

/// The id of a store: random, and the same in all copies of its file.
pub(crate) type StoreId = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) store: StoreId,
    /// How many commits were counted. Other commits are recognised by a row that they have added.
    pub(crate) counted: u64,
    /// The number of the next row.
    next: i64,
    /// The first number that is not reserved.
    end: i64,
}

impl Counters {
    /// Reads the counters of a database. None if it has no tables yet, or none that count commits.
    pub(crate) fn read(connection: &Connection) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT count(*) FROM pragma_table_info('numbers') WHERE name = 'commits'";
        if connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(store_error)? == 0 {
            return Ok(None);
        }
        let Some((counters, stored)) = Self::stored(connection)? else { return Ok(None) };
        counters.sum().check(stored, || "the row that counts its commits".to_owned())?;
        Ok(Some(counters))
    }

    fn stored(connection: &Connection) -> Result<Option<(Self, i64)>, StoreError> {
        let row = connection.query_row("SELECT store, commits, next, sum FROM numbers", [], |row| {
            let end = row.get(2)?;
            let counters = Self { store: row.get(0)?, counted: row.get::<_, i64>(1)? as u64, next: end, end };
            Ok((counters, row.get(3)?))
        });
        row.optional().map_err(store_error)
    }

    /// Computes the row's checksum anew.
    pub(crate) fn seal(connection: &Connection) -> Result<(), StoreError> {
        Self::stored(connection)?.map_or(Ok(()), |(counters, _)| counters.write(connection))
    }

    /// Returns a number that no row has had, for a row of this transaction. If the transaction is rolled back, these
    /// counters must be dropped.
    pub(crate) fn take(&mut self) -> i64 {
        if self.next == self.end {
            self.end += BLOCK;
        }
        self.next += 1;
        self.next - 1
    }

    /// Returns the number of a new run. A store in one file has one shard.
    pub(crate) fn take_run(&mut self) -> RunNo {
        RunNo::new(self.take(), Shard(0))
    }

    /// Returns whether these counters have reserved numbers that `before` had not.
    pub(crate) fn has_reserved_since(&self, before: &Self) -> bool {
        self.end != before.end
    }

    /// Writes the row.
    pub(crate) fn write(&self, connection: &Connection) -> Result<(), StoreError> {
        let sql = "UPDATE numbers SET commits = ?, next = ?, sum = ?";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        let row = params![self.counted as i64, self.end, self.sum().finish()];
        statement.execute(row).map(drop).map_err(store_error)
    }

    fn sum(&self) -> Sum {
        Sum::of(Part::Numbers, self.end).number(self.counted as i64).bytes(&self.store)
    }
}
