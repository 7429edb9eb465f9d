//! Removing what is left of deleted runs, step by step.

use dacapo_store::{SWEEP_BYTES, Shards};

use crate::failure::Failure;
use crate::link::Link;
use crate::row::{get, low_bits};
use crate::trip::values;

const TURNS: &str = "SELECT turn, length(record)::bigint FROM turns WHERE run = $1 ORDER BY turn LIMIT $2";
const MESSAGES: &str = "SELECT no, (length(job) + coalesce(length(outcome), 0))::bigint FROM messages WHERE run = $1 \
     ORDER BY messages.no LIMIT $2";
const END_TURNS: &str = "DELETE FROM turns WHERE run = $1 AND turn <= $2";
const END_MESSAGES: &str = "DELETE FROM messages WHERE run = $1 AND no <= $2";

/// The rows and bytes that a step may still remove.
struct Left {
    rows: usize,
    bytes: usize,
}

/// A node sweeps its own shards and those that no node owns, so that two never wait for each other.
const NEXT: &str = "SELECT run FROM garbage WHERE (run & 1023) <> ALL($1::bigint[]) ORDER BY run LIMIT 1";

/// Removes at most `most` turns and messages within the transaction that has begun, but none of these shards. Returns whether
/// there may be more.
pub(crate) fn sweep(link: &mut Link, most: usize, foreign: &Shards) -> Result<bool, Failure> {
    let mut left = Left { rows: most, bytes: SWEEP_BYTES };
    loop {
        let Some(row) = link.query(NEXT, values![low_bits(foreign)])?.pop() else {
            return Ok(false);
        };
        let run: i64 = get(&row, 0)?;
        let is_done = remove(link, run, (TURNS, END_TURNS), &mut left)?
            && remove(link, run, (MESSAGES, END_MESSAGES), &mut left)?;
        if !is_done {
            return Ok(true);
        }
        link.query("DELETE FROM garbage WHERE run = $1", values![run])?;
    }
}

/// Removes rows of one table. Returns whether all are removed.
fn remove(link: &mut Link, run: i64, (list, delete): (&str, &str), left: &mut Left) -> Result<bool, Failure> {
    // Asks for one more row, to see whether there is one.
    let rows = link.query(list, values![run, left.rows as i64 + 1])?;
    let (mut last, mut is_all) = (None, true);
    for row in &rows {
        if left.rows == 0 || left.bytes == 0 {
            is_all = false;
            break;
        }
        let (number, size): (i64, i64) = (get(row, 0)?, get(row, 1)?);
        left.rows -= 1;
        left.bytes = left.bytes.saturating_sub(size as usize);
        last = Some(number);
    }
    if let Some(last) = last {
        link.query(delete, values![run, last])?;
    }
    Ok(is_all)
}
