//! The numbers a store gives: rising, so that tables grow at their end, and each given once, also when what had it is deleted:
//! somebody may still hold it.

use std::fmt;

/// A run, within one store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RunNo(pub i64);

/// A task, within one store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TaskNo(pub i64);

/// The number of a message within one store. Numbers are no order of arrival: two nodes may commit in another order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MessageNo(pub i64);

/// A node, for as long as its lease holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeNo(pub i64);

/// The fence: who took a run last. A write that names an older epoch is refused.
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
