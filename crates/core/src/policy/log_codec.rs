//! The encoded forms of a choice log: CBOR for stores, JSON for people and tools. Both are versioned and checked.
//!
//! In CBOR a log is `[format, algorithm, version, seed or null, first step, items]`. Items are an array of unknown
//! length, so that one item may be two values:
//!
//! ```text
//! [action, …]                  set
//! null                         again
//! place << 2                   pick
//! place << 2 | 1               drop
//! times << 2 | 2               lone
//! of << 2 | 3, chosen          branch
//! ```

use minicbor::data::Type;
use minicbor::decode::{Decode, Decoder};
use minicbor::encode::{Encode, Encoder, Write};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::action::Action;
use super::choice_log::{ChoiceLog, LogHeader};
use super::error::PolicyError;
use super::item::Item;
use crate::Name;

/// The version of the encoded forms. It is raised if they ever change; older ones stay readable.
const FORMAT: u32 = 1;

impl ChoiceLog {
    /// Returns the log in binary.
    pub fn to_bytes(&self) -> Vec<u8> {
        minicbor::to_vec(self).expect("writing to memory does not fail")
    }

    /// Reads a log from its binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        let mut decoder = Decoder::new(bytes);
        let log = Self::decode(&mut decoder, &mut ()).map_err(PolicyError::invalid)?;
        match bytes.len() - decoder.position() {
            0 => Ok(log),
            more => Err(PolicyError::invalid(format!("{more} bytes follow its end"))),
        }
    }

    /// Returns the log in JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a log has no keys that are no strings")
    }

    /// Reads a log from its JSON form.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        serde_json::from_str(text).map_err(PolicyError::invalid)
    }
}

fn unknown(format: u32) -> String {
    format!("it is written in format {format}, and this program reads format {FORMAT}")
}

impl<C> Encode<C> for ChoiceLog {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.array(6)?.u32(FORMAT)?.str(&self.header.algorithm)?.u32(self.header.version)?;
        self.header.seed.encode(e, ctx)?;
        e.u64(self.first_step)?.begin_array()?;
        for item in &self.items {
            match item {
                Item::Set(set) => set.encode(e, ctx)?,
                Item::Again => e.null().map(drop)?,
                Item::Pick(place) => e.u64(u64::from(*place) << 2).map(drop)?,
                Item::Drop(place) => e.u64(u64::from(*place) << 2 | 1).map(drop)?,
                Item::Lone(times) => e.u64(times << 2 | 2).map(drop)?,
                Item::Branch { of, chosen } => e.u64(u64::from(*of) << 2 | 3)?.u32(*chosen).map(drop)?,
            }
        }
        e.end()?;
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for ChoiceLog {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        let bad = |reason: &str| minicbor::decode::Error::message(reason);
        if d.array()? != Some(6) {
            return Err(bad("it does not have six parts"));
        }
        let format = d.u32()?;
        if format != FORMAT {
            return Err(bad(&unknown(format)));
        }
        let header = LogHeader { algorithm: Name::decode(d, ctx)?, version: d.u32()?, seed: Option::decode(d, ctx)? };
        let first_step = d.u64()?;
        if d.array()?.is_some() {
            return Err(bad("its items do not have an open end"));
        }
        let mut items = Vec::new();
        while d.datatype()? != Type::Break {
            items.push(read_item(d, ctx)?);
        }
        d.skip()?;
        Self::checked(header, first_step, items).map_err(minicbor::decode::Error::message)
    }
}

fn read_item<C>(d: &mut Decoder<'_>, ctx: &mut C) -> Result<Item, minicbor::decode::Error> {
    match d.datatype()? {
        Type::Array => return Vec::<Action>::decode(d, ctx).map(|set| Item::Set(set.into())),
        Type::Null => return d.null().map(|()| Item::Again),
        _ => {}
    }
    let packed = d.u64()?;
    let small = || u32::try_from(packed >> 2).map_err(minicbor::decode::Error::message);
    Ok(match packed & 3 {
        0 => Item::Pick(small()?),
        1 => Item::Drop(small()?),
        2 => Item::Lone(packed >> 2),
        _ => Item::Branch { of: small()?, chosen: d.u32()? },
    })
}

/// The parts of a log as JSON shows them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    format: u32,
    algorithm: Name,
    version: u32,
    seed: Option<u64>,
    first_step: u64,
    items: Vec<Item>,
}

impl Serialize for ChoiceLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LogHeader { algorithm, version, seed } = self.header.clone();
        let (first_step, items) = (self.first_step, self.items.clone());
        Json { format: FORMAT, algorithm, version, seed, first_step, items }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ChoiceLog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Json { format, algorithm, version, seed, first_step, items } = Json::deserialize(deserializer)?;
        if format != FORMAT {
            return Err(serde::de::Error::custom(unknown(format)));
        }
        Self::checked(LogHeader { algorithm, version, seed }, first_step, items).map_err(serde::de::Error::custom)
    }
}
