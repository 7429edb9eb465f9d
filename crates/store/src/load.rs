//! What is read to load a run: its row, the records of its turns, and the messages that no turn has taken.

use std::ops::ControlFlow;

use crate::{MessageRow, RunRow};

/// A run that is read to be loaded.
#[derive(Debug)]
pub struct StoredRun {
    /// Its row.
    pub row: RunRow,
    /// The rest, if it was read. None: the run is closed, so that it is seldom played, or each part costs so little by itself that it
    /// is read when it is needed.
    pub along: Option<ReadAlong>,
}

/// The rest of a run, read along with its row because a trip to the store costs more than what it brings.
#[derive(Debug)]
pub struct ReadAlong {
    /// The first records of the run, read after its row: they are at least as many as the row counts, or go on.
    pub records: Records,
    /// Its unseen messages, read after these records: none of them was taken by one of these turns. None: they are many, or large,
    /// and are read when it is known that the run is played.
    pub unseen: Option<Vec<MessageRow>>,
}

/// Records of turns as they are stored, one after the other. They are read in portions, so that others may read in
/// between, and no long history is ever in memory as a whole.
#[derive(Debug, Default)]
pub struct Records {
    /// The bytes of all of them.
    bytes: Vec<u8>,
    /// The number of each, and where it ends.
    ends: Vec<(u64, usize)>,
}

impl ReadAlong {
    /// The most unseen messages that are read along with a run.
    pub const MOST: usize = 256;
    /// The most bytes of them.
    pub const BYTES: usize = 1 << 20;
}

impl Records {
    /// The most records of a portion.
    pub const MOST: usize = 256;
    /// A portion of so many bytes takes no more records.
    pub const BYTES: usize = 1 << 20;

    /// Creates an empty portion with room for this many bytes.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(Self::MOST) }
    }

    /// Adds the next record.
    pub fn push(&mut self, turn: u64, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push((turn, self.bytes.len()));
    }

    /// Returns whether the portion takes no more records.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ends.len() >= Self::MOST || self.bytes.len() >= Self::BYTES
    }

    /// Returns the turn after them, if there may be more.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.ends.last().filter(|_| self.is_full()).map(|(last, _)| last + 1)
    }

    /// Returns the number of bytes of all records.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Shows the records in order, until `show` breaks.
    pub fn show(&self, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut begin = 0;
        self.ends.iter().try_for_each(|(turn, end)| {
            let record = &self.bytes[begin..*end];
            begin = *end;
            show(*turn, record)
        })
    }
}
