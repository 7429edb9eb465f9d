//! The row of a message.

use dacapo_store::{MessageNo, MessageRow, RunNo, StoreError};
use tokio_postgres::Row;

use super::{get, name, time};

/// The columns of a message, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "no, run, key, sent, job, taken, outcome";

/// Reads a message.
pub(crate) fn read(row: &Row) -> Result<MessageRow, StoreError> {
    Ok(MessageRow {
        no: MessageNo(get(row, 0)?),
        run: RunNo(get(row, 1)?),
        key: name(row, 2)?,
        sent: time(get(row, 3)?),
        job: get(row, 4)?,
        taken: get::<Option<i64>>(row, 5)?.map(|turn| turn as u64),
        outcome: get(row, 6)?,
    })
}
