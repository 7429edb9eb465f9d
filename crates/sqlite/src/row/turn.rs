//! The row of a turn. The record has a checksum of its own; this one binds it to this turn of this run.

use rusqlite::Row;

use dacapo_store::{RunNo, StoreError};

use crate::store_error::{corrupt, store_error};
use crate::sum::Part;

/// The columns of a turn, in the order in which [`read`] reads them.
pub(crate) const COLUMNS: &str = "turn, record, sum";

/// The number of bytes at the end of a record that include its checksum.
const END: usize = 8;

/// The checksum of a row: over its numbers, the length of the record and its last bytes.
///
/// Those are the record's own checksum, which covers the rest and is compared when the record is decoded, so that the bytes of a
/// record are summed once on the way in and once on the way out. A CRC over the whole record would add nothing: over bytes that
/// end with their CRC it depends on their length alone.
pub(crate) fn sum(run: RunNo, turn: u64, record: &[u8]) -> i64 {
    let end = &record[record.len().saturating_sub(END)..];
    let mut head = [0; 33];
    head[0] = Part::Turn as u8;
    head[1..9].copy_from_slice(&run.0.to_le_bytes());
    head[9..17].copy_from_slice(&turn.to_le_bytes());
    head[17..25].copy_from_slice(&(record.len() as u64).to_le_bytes());
    head[25..25 + end.len()].copy_from_slice(end);
    crc32fast::hash(&head).cast_signed().into()
}

/// Reads the number and the record of a turn of this run and compares its checksum.
pub(crate) fn read<'r>(run: RunNo, row: &'r Row<'_>) -> Result<(u64, &'r [u8]), StoreError> {
    let read = || Ok((row.get::<_, i64>(0)? as u64, row.get_ref(1)?, row.get::<_, i64>(2)?));
    let (turn, record, stored) = read().map_err(store_error)?;
    let record = record.as_blob().map_err(|error| corrupt(error.to_string()))?;
    if sum(run, turn, record) != stored {
        return Err(corrupt(format!("turn {turn} of {run} does not match its checksum")));
    }
    Ok((turn, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that ends with its checksum, as the core writes it.
    fn sealed(body: &[u8]) -> Vec<u8> {
        [body, &crc32fast::hash(body).to_le_bytes()].concat()
    }

    #[test]
    fn record_of_the_same_length_from_another_run_does_not_match() {
        let (one, other) = (sealed(b"one charge of 100 euros"), sealed(b"one charge of 900 euros"));
        assert_eq!(crc32fast::hash(&one), crc32fast::hash(&other), "why a CRC over a whole record tells nothing");
        let sum_of = |run, turn, record: &[u8]| sum(RunNo(run), turn, record);
        let stored = sum_of(1, 3, &one);
        assert_eq!(sum_of(1, 3, &one), stored);
        assert_ne!(sum_of(1, 3, &other), stored);
        assert_ne!(sum_of(2, 3, &one), stored, "another run");
        assert_ne!(sum_of(1, 4, &one), stored, "another turn");
        assert_ne!(sum_of(1, 3, &one[1..]), stored, "another length");
        assert_ne!(sum_of(1, 3, b""), stored);
        for bit in 0..one.len() * 8 {
            let mut flipped = one.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (body, end) = flipped.split_at(one.len() - 4);
            let is_noticed = sum_of(1, 3, &flipped) != stored || crc32fast::hash(body).to_le_bytes() != end;
            assert!(is_noticed, "bit {bit} was flipped");
        }
    }
}
