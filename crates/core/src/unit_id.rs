//! Unit ids: the position of a unit in the run's structure.

use std::fmt;

use minicbor::decode::{Decode, Decoder};
use minicbor::encode::{Encode, Encoder, Write};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use thiserror::Error;

/// One step down the tree of units. The index counts every child its parent ever started, so no id is used twice.
/// The letter is for people: two segments compare by index alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Seg {
    /// A branch of `parallel`.
    P(u32),
    /// A launched unit.
    L(u32),
    /// A handler of a signal or an update.
    H(u32),
    /// The async part of a phase's handler.
    A(u32),
}

impl Seg {
    /// Returns the number that orders this segment among its siblings.
    pub const fn index(self) -> u32 {
        match self {
            Self::P(index) | Self::L(index) | Self::H(index) | Self::A(index) => index,
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::P(_) => 'p',
            Self::L(_) => 'l',
            Self::H(_) => 'h',
            Self::A(_) => 'a',
        }
    }

    const fn new(letter: char, index: u32) -> Option<Self> {
        match letter {
            'p' => Some(Self::P(index)),
            'l' => Some(Self::L(index)),
            'h' => Some(Self::H(index)),
            'a' => Some(Self::A(index)),
            _ => None,
        }
    }
}

/// The stable, structural name of a unit: `[]` is the root, `[p1,p0]` the first branch of its second branch, `[h2]`
/// the third handler. It follows from the program's structure and never from timing.
///
/// Ids are ordered as the scheduler orders units by default: the root, then branches and launched units by path, then
/// handlers by number.
///
/// ```
/// use dacapo_core::UnitId;
/// let mut ids: Vec<UnitId> = ["[h0]", "[p1]", "[]", "[p0,p1]", "[p0]"].iter().map(|id| id.parse().unwrap()).collect();
/// ids.sort();
/// let sorted: Vec<String> = ids.iter().map(UnitId::to_string).collect();
/// assert_eq!(sorted, ["[]", "[p0]", "[p0,p1]", "[p1]", "[h0]"]);
/// ```
#[derive(PartialEq, Eq, Hash, Default)]
pub struct UnitId(SmallVec<[Seg; 3]>);

/// Segments are plain numbers, so a copy is one move of bytes; the derived clone would go through them one by one.
impl Clone for UnitId {
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

impl UnitId {
    /// Returns the id of the unit that plays the workflow function itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the id of a child of this unit.
    #[must_use]
    pub fn child(&self, seg: Seg) -> Self {
        let mut path = self.0.clone();
        path.push(seg);
        Self(path)
    }

    /// Returns the path from the root.
    pub fn path(&self) -> &[Seg] {
        &self.0
    }

    /// Returns whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the unit as errors name it: `the root unit`, `unit [p0]`.
    pub fn named(&self) -> NamedUnit<'_> {
        NamedUnit(self)
    }

    /// Returns whether this is a handler or a unit that a handler started.
    pub fn is_handler(&self) -> bool {
        matches!(self.0.first(), Some(Seg::H(_)))
    }
}

impl FromIterator<Seg> for UnitId {
    fn from_iter<I: IntoIterator<Item = Seg>>(segs: I) -> Self {
        Self(segs.into_iter().collect())
    }
}

impl PartialOrd for UnitId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UnitId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_index = self.0.iter().map(|seg| seg.index()).cmp(other.0.iter().map(|seg| seg.index()));
        // Letters break ties between ids that no run can hold at once, so that the order stays total over all ids.
        let by_letter = || self.0.iter().map(|seg| seg.letter()).cmp(other.0.iter().map(|seg| seg.letter()));
        self.is_handler().cmp(&other.is_handler()).then(by_index).then_with(by_letter)
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (place, seg) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{}{}", seg.letter(), seg.index())?;
        }
        f.write_str("]")
    }
}

/// A unit as errors name it. Made by [`UnitId::named`].
#[derive(Clone, Copy, Debug)]
pub struct NamedUnit<'a>(&'a UnitId);

impl fmt::Display for NamedUnit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_root() {
            true => f.write_str("the root unit"),
            false => write!(f, "unit {}", self.0),
        }
    }
}

impl fmt::Debug for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no unit id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no unit id: write `[]` for the root, `[p0]` for a branch, `[p1,l0]` for a unit it launched, `[h2]` for a handler"
)]
pub struct BadUnitId(String);

impl std::str::FromStr for UnitId {
    type Err = BadUnitId;

    fn from_str(text: &str) -> Result<Self, BadUnitId> {
        let bad = || BadUnitId(text.to_owned());
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(bad)?;
        if inner.is_empty() {
            return Ok(Self::root());
        }
        let seg = |part: &str| {
            let letter = part.chars().next()?;
            let index = part.get(1..)?.parse().ok()?;
            Seg::new(letter, index)
        };
        inner.split(',').map(seg).collect::<Option<Self>>().ok_or_else(bad)
    }
}

impl Serialize for UnitId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnitId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl<C> Encode<C> for UnitId {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.array(self.0.len() as u64)?;
        for seg in &self.0 {
            let kind = match seg {
                Seg::P(_) => 0,
                Seg::L(_) => 1,
                Seg::H(_) => 2,
                Seg::A(_) => 3,
            };
            e.u64(u64::from(seg.index()) << 2 | kind)?;
        }
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for UnitId {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let bad = || minicbor::decode::Error::message("a unit id is an array of segments");
        let len = d.array()?.ok_or_else(bad)?;
        let mut path = SmallVec::new();
        for _ in 0..len {
            let packed = d.u64()?;
            let index = u32::try_from(packed >> 2).map_err(|_| bad())?;
            path.push(match packed & 3 {
                0 => Seg::P(index),
                1 => Seg::L(index),
                2 => Seg::H(index),
                _ => Seg::A(index),
            });
        }
        Ok(Self(path))
    }
}
