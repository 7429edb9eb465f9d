//! The numbers a store gives. They rise, so that tables grow at their end. Each is given once, also after its row is
//! deleted, because a caller may still use the number.

use std::fmt;

/// The number of a run within one store. Its low bits are the run's shard, so that the newest run of a workflow id has the
/// highest number whatever its shard is. Numbers are not consecutive.
///
/// ```
/// use dacapo_store::{RunNo, Shard};
/// let (older, newer) = (RunNo::new(7, Shard(900)), RunNo::new(8, Shard(3)));
/// assert!(older < newer);
/// assert_eq!((newer.sequence(), newer.shard()), (8, Shard(3)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RunNo(pub i64);

/// A part of a store whose runs one node owns. Stores that one process serves have one shard, number 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Shard(pub u16);

impl Shard {
    /// The number of low bits of a run's number that are its shard.
    pub const BITS: u32 = 10;
    /// The most shards of a store.
    pub const COUNT: u16 = 1 << Self::BITS;
}

impl RunNo {
    /// Creates the number of a run in this shard. The sequence number rises from run to run.
    ///
    /// # Panics
    /// If the shard is [`Shard::COUNT`] or higher, or the sequence number does not fit.
    pub const fn new(sequence: i64, shard: Shard) -> Self {
        assert!(shard.0 < Shard::COUNT, "a shard is less than `Shard::COUNT`");
        let no = sequence << Shard::BITS;
        assert!(no >> Shard::BITS == sequence, "a sequence number fits beside the shard");
        Self(no | shard.0 as i64)
    }

    /// Returns the number without the shard. It rises from run to run.
    pub const fn sequence(self) -> i64 {
        self.0 >> Shard::BITS
    }

    /// Returns the run's shard.
    pub const fn shard(self) -> Shard {
        Shard((self.0 & (Shard::COUNT as i64 - 1)) as u16)
    }
}

/// The number of a task within one store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TaskNo(pub i64);

/// The number of a message within one store. Numbers do not give the order of arrival: two nodes may commit in another
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MessageNo(pub i64);

/// The number of a node, for as long as its lease holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeNo(pub i64);

/// The fence: it changes whenever a node takes a run. A write that names an older epoch is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub i64);

impl fmt::Display for RunNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_holds_sequence_and_shard_and_orders_by_sequence_first() {
        let last = Shard(Shard::COUNT - 1);
        let (first, most) = (i64::MIN >> Shard::BITS, i64::MAX >> Shard::BITS);
        let mut before = None;
        for sequence in [first, -5, -1, 0, 1, 7, most] {
            for shard in [Shard(0), Shard(1), last] {
                let no = RunNo::new(sequence, shard);
                assert_eq!((no.sequence(), no.shard()), (sequence, shard), "{no}");
                assert!(before < Some(no), "{no}");
                before = Some(no);
            }
        }
    }

    #[test]
    #[should_panic(expected = "a sequence number fits beside the shard")]
    fn sequence_number_that_would_lose_bits_is_a_bug() {
        RunNo::new((i64::MAX >> Shard::BITS) + 1, Shard(0));
    }
}
