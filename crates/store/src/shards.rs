//! Sets of shards.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{RunNo, Shard};

const WORDS: usize = Shard::COUNT as usize / 64;

/// A set of shards.
///
/// ```
/// use dacapo_store::{Shard, Shards};
/// let shards = Shards::from_iter([Shard(3), Shard(1)]);
/// assert!(shards.contains(Shard(1)) && !shards.contains(Shard(2)));
/// assert_eq!(shards.iter().collect::<Vec<_>>(), [Shard(1), Shard(3)]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Shards([u64; WORDS]);

impl Shards {
    /// Adds a shard.
    pub fn insert(&mut self, Shard(shard): Shard) {
        self.0[usize::from(shard) / 64] |= 1 << (shard % 64);
    }

    /// Removes a shard.
    pub fn remove(&mut self, Shard(shard): Shard) {
        self.0[usize::from(shard) / 64] &= !(1 << (shard % 64));
    }

    /// Returns whether the set has this shard.
    pub const fn contains(&self, Shard(shard): Shard) -> bool {
        self.0[shard as usize / 64] & (1 << (shard % 64)) != 0
    }

    /// Returns whether the set has the shard of this run.
    pub const fn has_run(&self, run: RunNo) -> bool {
        self.contains(run.shard())
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns the number of shards.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the shards, in order.
    pub fn iter(&self) -> impl Iterator<Item = Shard> + '_ {
        (0..Shard::COUNT).map(Shard).filter(|shard| self.contains(*shard))
    }

    /// Returns the shards of this set that another lacks.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
}

impl FromIterator<Shard> for Shards {
    fn from_iter<I: IntoIterator<Item = Shard>>(shards: I) -> Self {
        let mut set = Self::default();
        shards.into_iter().for_each(|shard| set.insert(shard));
        set
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|shard| shard.0)).finish()
    }
}

/// A set of shards that threads read and change without a lock.
#[derive(Debug, Default)]
pub struct SharedShards([AtomicU64; WORDS]);

impl SharedShards {
    /// Returns whether the set has the shard of this run.
    pub fn has_run(&self, run: RunNo) -> bool {
        let Shard(shard) = run.shard();
        self.0[usize::from(shard) / 64].load(Ordering::Acquire) & (1 << (shard % 64)) != 0
    }

    /// Adds shards.
    pub fn add(&self, shards: &Shards) {
        for (word, more) in self.0.iter().zip(shards.0) {
            word.fetch_or(more, Ordering::AcqRel);
        }
    }

    /// Removes shards.
    pub fn remove(&self, shards: &Shards) {
        for (word, less) in self.0.iter().zip(shards.0) {
            word.fetch_and(!less, Ordering::AcqRel);
        }
    }

    /// Returns the set as it is now.
    pub fn get(&self) -> Shards {
        Shards(std::array::from_fn(|word| self.0[word].load(Ordering::Acquire)))
    }

    /// Removes all shards, and returns those that were there.
    pub fn clear(&self) -> Shards {
        Shards(std::array::from_fn(|word| self.0[word].swap(0, Ordering::AcqRel)))
    }
}
