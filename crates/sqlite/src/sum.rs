//! Checksums of rows. SQLite checks the pages of its log but not those of the file, so a flipped bit on the disk would
//! be read as another value. Columns that are written together share a checksum, which is stored beside them and
//! compared whenever they are read. It is bound to the table and to the number of the row, so that values that changed
//! places are noticed too.

use crc32fast::Hasher;

use dacapo_store::StoreError;

use crate::store_error::corrupt;

/// The table and columns that a checksum covers. The numbers are part of the stored checksums and never change their
/// meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    RunIdentity = 1,
    RunProgress = 2,
    RunStuck = 3,
    RunMemo = 4,
    RunPublished = 5,
    RunResult = 6,
    Turn = 7,
    Task = 8,
    Attempt = 9,
    Timer = 10,
    Message = 11,
    Taken = 12,
    Answer = 13,
    Attribute = 14,
    Numbers = 15,
    Garbage = 16,
}

/// A checksum over some columns, in the order in which they are added. Most columns are a few bytes, and a checksum
/// over few bytes at a time is slow: they are gathered first.
pub(crate) struct Sum {
    hasher: Hasher,
    gathered: [u8; GATHERED],
    length: usize,
}

const GATHERED: usize = 128;

impl Sum {
    /// Begins the checksum of these columns in the row of this number.
    pub(crate) fn of(part: Part, no: i64) -> Self {
        let mut sum = Self { hasher: Hasher::new(), gathered: [0; GATHERED], length: 0 };
        sum.add(&[part as u8]);
        sum.add(&no.to_le_bytes());
        sum
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.length + bytes.len() > GATHERED {
            self.hasher.update(&self.gathered[..self.length]);
            self.length = 0;
        }
        match self.gathered.get_mut(self.length..self.length + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.hasher.update(bytes),
        }
    }

    pub(crate) fn number(mut self, number: i64) -> Self {
        self.add(&number.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        // With the length, so that bytes that move from one column to the next change the checksum.
        self.add(&(bytes.len() as u32).to_le_bytes());
        self.add(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn option<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self.flag(1), value),
            None => self.flag(0),
        }
    }

    fn flag(mut self, is_there: u8) -> Self {
        self.add(&[is_there]);
        self
    }

    pub(crate) fn option_number(self, number: Option<i64>) -> Self {
        self.option(number, Self::number)
    }

    pub(crate) fn option_bytes(self, bytes: Option<&[u8]>) -> Self {
        self.option(bytes, Self::bytes)
    }

    pub(crate) fn option_text(self, text: Option<&str>) -> Self {
        self.option(text, Self::text)
    }

    /// Returns the checksum as it is stored: signed, so that SQLite keeps it in four bytes.
    pub(crate) fn finish(mut self) -> i64 {
        self.hasher.update(&self.gathered[..self.length]);
        self.hasher.finalize().cast_signed().into()
    }

    /// Compares the checksum with the stored one. `what` names what was read, for the error.
    pub(crate) fn check(self, stored: i64, what: impl FnOnce() -> String) -> Result<(), StoreError> {
        if self.finish() == stored { Ok(()) } else { Err(corrupt(format!("{} does not match its checksum", what()))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns that are gathered, and those too long for that, give the checksum of all bytes in their order.
    #[test]
    fn checksum_is_that_of_all_bytes_in_order_however_long_the_columns_are() {
        for length in [0, 1, 8, 100, 114, 115, 116, 127, 128, 129, 500] {
            let column: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut all = vec![Part::Turn as u8];
            all.extend(7_i64.to_le_bytes());
            for _ in 0..3 {
                all.extend((length as u32).to_le_bytes());
                all.extend(&column);
            }
            all.extend(9_i64.to_le_bytes());
            let sum = Sum::of(Part::Turn, 7).bytes(&column).bytes(&column).bytes(&column).number(9).finish();
            assert_eq!(sum, i64::from(crc32fast::hash(&all).cast_signed()), "columns of {length} bytes");
        }
    }
}
