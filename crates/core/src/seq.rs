//! The numbers of a run: seqs, operation ids, ordinals.

use std::fmt;
use std::str::FromStr;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::rng::{derive, mix};

/// The dense, run-local number of an operation, which can be resolved or cancelled: activities, timers, children,
/// external signals and cancels, side effects, promises. It counts from zero and never starts again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Encode, Decode, Serialize, Deserialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Seq(#[n(0)] pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The id of an operation: a UUID that follows from the run's seed and the operation's seq, so a rebuilt run gives the
/// same ids and a user's draw from `random` never shifts one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode)]
pub struct OperationId {
    #[n(0)]
    high: u64,
    #[n(1)]
    low: u64,
}

impl OperationId {
    /// Returns the id of operation `seq` in a run with this seed.
    pub fn of(seed: u64, seq: Seq) -> Self {
        Self::from_bits(derive(seed, seq.0), mix(derive(!seed, seq.0)))
    }

    /// Creates a version 4 UUID with these random bits.
    pub(crate) const fn from_bits(high: u64, low: u64) -> Self {
        let high = (high & !0xf000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        Self { high, low }
    }

    /// Returns the id as one number.
    pub const fn as_u128(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = (self.high, self.low);
        write!(f, "{:08x}-{:04x}-{:04x}-", high >> 32, high >> 16 & 0xffff, high & 0xffff)?;
        write!(f, "{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for OperationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OperationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Text that is no operation's id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no UUID")]
pub struct NotAnId(String);

impl FromStr for OperationId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
        let number = number.ok_or_else(|| NotAnId(text.to_owned()))?;
        Ok(Self { high: (number >> 64) as u64, low: number as u64 })
    }
}

/// The position of an event in its run: by turn, then by place within the turn. Jobs have the first places of a turn,
/// in activation order; events that units cause come after them. It is the same on every backend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ordinal {
    /// The turn of the event.
    pub turn: u64,
    /// The place within the turn.
    pub place: u32,
}
