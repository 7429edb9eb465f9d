//! Checksums of rows. SQLite checks the pages of its log and not those of the file, so a flipped bit on the disk would be another
//! value. Columns that are written together share a checksum, which is stored beside them and compared whenever they are read. It is
//! bound to the table and to the number of the row, so that values that changed places are noticed too.

use crc32fast::Hasher;

use dacapo_store::StoreError;

use crate::trouble::corrupt;

/// Which columns of which table. The numbers are part of the stored checksums and never change their meaning.
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

/// A checksum over some columns, in the order in which they are added.
pub(crate) struct Sum(Hasher);

impl Sum {
    /// The checksum of these columns in the row of this number.
    pub(crate) fn of(part: Part, no: i64) -> Self {
        let mut hasher = Hasher::new();
        let mut head = [part as u8; 9];
        head[1..].copy_from_slice(&no.to_le_bytes());
        hasher.update(&head);
        Self(hasher)
    }

    pub(crate) fn number(mut self, number: i64) -> Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        // With its length, so that a column that ends later and one that begins earlier are not the same.
        self.0.update(&(bytes.len() as u32).to_le_bytes());
        self.0.update(bytes);
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
        self.0.update(&[is_there]);
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

    /// As it is stored: with a sign, so that SQLite keeps it in four bytes.
    pub(crate) fn finish(self) -> i64 {
        self.0.finalize().cast_signed().into()
    }

    /// Compares it with the one that is stored. `what` says what was read, for the error.
    pub(crate) fn check(self, stored: i64, what: impl FnOnce() -> String) -> Result<(), StoreError> {
        if self.finish() == stored { Ok(()) } else { Err(corrupt(format!("{} does not match its checksum", what()))) }
    }
}
