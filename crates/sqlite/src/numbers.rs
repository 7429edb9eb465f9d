//! Numbers that are given once. SQLite would give that of a deleted row again, and whoever still holds it would then mean
//! a row of somebody else.

use rusqlite::Connection;

use dacapo_store::StoreError;

use crate::trouble::trouble;

/// How many numbers are reserved in the file at a time: a process that dies wastes what is left of them, and a number costs
/// no write of its own.
const BLOCK: i64 = 1 << 20;

/// What is left of the block that was reserved last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    next: i64,
    end: i64,
}

impl Numbers {
    /// A number that nobody has had, for a row of this transaction. If that is rolled back, so must be these numbers.
    pub(crate) fn take(&mut self, connection: &Connection) -> Result<i64, StoreError> {
        if self.next == self.end {
            let mut reserve =
                connection.prepare_cached("UPDATE numbers SET next = next + ? RETURNING next").map_err(trouble)?;
            self.end = reserve.query_row([BLOCK], |row| row.get(0)).map_err(trouble)?;
            self.next = self.end - BLOCK;
        }
        self.next += 1;
        Ok(self.next - 1)
    }
}
