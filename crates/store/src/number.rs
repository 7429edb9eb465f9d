//! The numbers a store gives. They rise, so that tables grow at their end. Each is given once, also after its row is
//! deleted, because a caller may still use the number.

use std::fmt;

/// The number of a run within one store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RunNo(pub i64);

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
