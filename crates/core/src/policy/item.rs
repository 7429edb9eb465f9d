//! Items: the parts of a choice log.
//!
//! A log of full sets would cost n² for a round of n units. So a set is written once, and what was picked from it as
//! places in that set:
//!
//! ```text
//! set {[p0], [p1], [p2]}   opens a set, all of it left
//! pick 1                   [p1] among {[p0], [p1], [p2]}
//! branch 2 of 3            an XOR point in between; the open set stays open
//! drop 0                   [p0] was dropped before its step came
//! pick 2                   [p2] among {[p2]}
//! again                    opens the same set once more
//! set {[]}, lone 40        the root, alone, forty times in a row
//! ```

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::action::Action;

/// The most branches one XOR point may have: a log promises to show full sets, and a set must fit into memory.
pub(crate) const MAX_BRANCHES: u32 = 1 << 20;

/// The largest number of choices from a set of one in a row: what the binary form can hold.
pub(crate) const MAX_TIMES: u64 = u64::MAX >> 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Item {
    /// A set is opened, with all its members left.
    #[serde(serialize_with = "write_set", deserialize_with = "read_set")]
    Set(Arc<[Action]>),
    /// The last set is opened once more.
    Again,
    /// The member at this place was picked among those left, and leaves the set.
    Pick(u32),
    /// The member at this place was found dropped, and leaves the set.
    Drop(u32),
    /// The last set, which has one member, was opened and picked from this many times in a row.
    Lone(u64),
    /// A branch of several equals was taken, by its number from zero.
    Branch { of: u32, chosen: u32 },
}

fn write_set<S: Serializer>(set: &Arc<[Action]>, serializer: S) -> Result<S::Ok, S::Error> {
    set.serialize(serializer)
}

fn read_set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[Action]>, D::Error> {
    Vec::deserialize(deserializer).map(Into::into)
}
