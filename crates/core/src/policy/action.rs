//! Actions: what a policy picks among.

use std::fmt;
use std::num::NonZeroU32;

use minicbor::data::Type;
use minicbor::decode::{Decode, Decoder};
use minicbor::encode::{Encode, Encoder, Write};
use serde::{Deserialize, Serialize};

use crate::UnitId;

/// One option of a policy: a unit that may go next, or one of several equals.
///
/// Actions are ordered by kind, units before branches, and then by id or index. Nothing in that order depends on
/// addresses, time or the process, so it is the same wherever a run is played.
///
/// ```
/// use dacapo_core::{Action, Seg, UnitId};
/// let unit = Action::Unit(UnitId::root().child(Seg::P(0)));
/// let branch = Action::branch(2).unwrap();
/// assert!(unit < branch);
/// assert_eq!(format!("{unit} {branch}"), "[p0] xor 2");
/// assert_eq!(Action::branch(0), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// This unit goes next.
    Unit(UnitId),
    /// This one of several equals is taken; the first is 1.
    XorBranch(NonZeroU32),
}

impl Action {
    /// Returns the branch with this number, unless it is zero: branches are numbered from 1.
    pub fn branch(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self::XorBranch)
    }

    /// Returns the unit, if the action is one.
    pub fn unit(&self) -> Option<&UnitId> {
        match self {
            Self::Unit(id) => Some(id),
            Self::XorBranch(_) => None,
        }
    }

    /// Returns a number that orders actions as `Ord` does as far as it goes: actions with the same key must still be
    /// compared. One comparison of numbers is several times cheaper than one of paths.
    pub(crate) fn sort_key(&self) -> u128 {
        match self {
            Self::Unit(id) => {
                // A missing segment comes before any that is there.
                let segs = (0..3).map(|depth| id.path().get(depth).map_or(0, |seg| u128::from(seg.index()) + 1));
                segs.fold(u128::from(id.is_handler()), |key, seg| key << 33 | seg)
            }
            Self::XorBranch(number) => 1 << 127 | u128::from(number.get()),
        }
    }

    /// Returns the branch at this place, counted from zero.
    pub(crate) fn branch_at(place: usize) -> Self {
        Self::XorBranch(NonZeroU32::MIN.saturating_add(u32::try_from(place).unwrap_or(u32::MAX)))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(id) => write!(f, "{id}"),
            Self::XorBranch(number) => write!(f, "xor {number}"),
        }
    }
}

// The type of the value tells the kind: a unit is an array (its path), a branch a number. A kind that is added later
// gets a type of its own, which this code refuses.
impl<C> Encode<C> for Action {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        match self {
            Self::Unit(id) => id.encode(e, ctx),
            Self::XorBranch(number) => number.encode(e, ctx),
        }
    }
}

impl<'b, C> Decode<'b, C> for Action {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        match d.datatype()? {
            Type::Array => UnitId::decode(d, ctx).map(Self::Unit),
            Type::U8 | Type::U16 | Type::U32 => NonZeroU32::decode(d, ctx).map(Self::XorBranch),
            other => Err(minicbor::decode::Error::message(format!("{other} stands where an action should"))),
        }
    }
}
