//! Ranks of locks.

/// The place of a lock class in the order in which a thread takes locks: rising numbers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    pub(crate) number: u16,
    pub(crate) name: &'static str,
    pub(crate) may_block: bool,
}

impl Rank {
    /// Creates a lock class under which a thread must not block, because threads that serve others wait for it.
    pub const fn new(number: u16, name: &'static str) -> Self {
        Self { number, name, may_block: false }
    }

    /// Creates a lock class under which a thread may block: a connection, a transaction.
    pub const fn blocking(number: u16, name: &'static str) -> Self {
        Self { number, name, may_block: true }
    }

    /// Returns the rank's number.
    pub const fn number(self) -> u16 {
        self.number
    }

    /// Returns the lock class's name, as in the table of docs/engine.md.
    pub const fn name(self) -> &'static str {
        self.name
    }
}
