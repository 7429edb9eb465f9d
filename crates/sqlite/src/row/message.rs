//! The row of a message.

use rusqlite::{Connection, Row, params};

use dacapo_store::{MessageNo, MessageRow, RunNo, StoreError};

use crate::columns::{moment, name, time};
use crate::store_error::store_error;
use crate::sum::{Part, Sum};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of a message, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "no, run, key, sent, job, taken, outcome, chain, sum, taken_sum, outcome_sum";

/// Returns the checksum of the message as it was sent.
pub(crate) fn sum(no: i64, run: RunNo, key: &str, sent: i64, job: &[u8], chain: Option<&str>) -> Sum {
    Sum::of(Part::Message, no).number(run.0).text(key).number(sent).bytes(job).option_text(chain)
}

/// Returns the checksum of the turn that took it.
pub(crate) fn taken_sum(no: i64, turn: u64) -> Sum {
    Sum::of(Part::Taken, no).number(turn as i64)
}

/// Returns the checksum of the outcome, which is written by run and key.
pub(crate) fn outcome_sum(run: RunNo, key: &str, outcome: &[u8]) -> Sum {
    Sum::of(Part::Answer, run.0).text(key).bytes(outcome)
}

/// A message as it is stored.
struct Stored {
    row: MessageRow,
    chain: Option<String>,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let message = MessageRow {
            no: MessageNo(row.get(0)?),
            run: RunNo(row.get(1)?),
            key: name(row, 2)?,
            sent: time(row.get(3)?),
            job: row.get(4)?,
            taken: row.get::<_, Option<i64>>(5)?.map(|turn| turn as u64),
            outcome: row.get(6)?,
        };
        Ok(Self { row: message, chain: row.get(7)? })
    }

    fn sums(&self) -> (i64, Option<i64>, Option<i64>) {
        let MessageRow { no, run, key, sent, job, taken, outcome } = &self.row;
        (
            sum(no.0, *run, key, moment(*sent), job, self.chain.as_deref()).finish(),
            taken.map(|turn| taken_sum(no.0, turn).finish()),
            outcome.as_ref().map(|outcome| outcome_sum(*run, key, outcome).finish()),
        )
    }
}

/// Reads a message and compares its checksums.
pub(crate) fn read(row: &Row<'_>) -> Result<MessageRow> {
    let stored = Stored::read(row).map_err(store_error)?;
    let sums = || Ok((row.get(8)?, row.get(9)?, row.get(10)?));
    if stored.sums() != sums().map_err(store_error)? {
        let MessageRow { no, run, key, .. } = &stored.row;
        let what = format!("message {} ({:?}) of {run} does not match its checksum", no.0, key.as_str());
        return Err(StoreError::Corrupt(what));
    }
    Ok(stored.row)
}

/// Computes the checksums of a message anew. A caller that changes columns of a row reads the row before, and calls
/// this afterwards.
pub(crate) fn seal(connection: &Connection, no: MessageNo) -> Result<()> {
    let seal = || {
        let sql = format!("SELECT {COLUMNS} FROM messages WHERE no = ?");
        let (sum, taken, outcome) =
            connection.prepare_cached(&sql)?.query_row([no.0], |row| Ok(Stored::read(row)?.sums()))?;
        let sql = "UPDATE messages SET sum = ?, taken_sum = ?, outcome_sum = ? WHERE no = ?";
        connection.prepare_cached(sql)?.execute(params![sum, taken, outcome, no.0])
    };
    seal().map(drop).map_err(store_error)
}
