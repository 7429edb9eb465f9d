//! Payloads: the bytes that user code hands over, and what they are.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::Name;

/// Named payloads that travel beside a call: tracing, authentication, whatever an interceptor adds.
pub type Headers = BTreeMap<Name, Payload>;

/// One encoded value. The core never looks inside; it only compares the bytes.
#[derive(Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// The encoded bytes, before any codec such as encryption or compression.
    #[n(0)]
    #[cbor(with = "cbor_bytes")]
    #[serde(with = "text_bytes")]
    pub data: Bytes,
    /// How the bytes are encoded, `json/plain` unless said otherwise.
    #[n(1)]
    #[serde(default = "json", skip_serializing_if = "is_json")]
    pub encoding: Name,
    /// Whatever else a converter wants to remember about the bytes.
    #[n(2)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<Name, Name>,
}

const JSON: Name = Name::from_static("json/plain");

fn json() -> Name {
    JSON
}

fn is_json(encoding: &Name) -> bool {
    *encoding == JSON
}

impl Payload {
    /// A payload of JSON text. The text is taken as it is.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self { data: text.into(), encoding: JSON, metadata: BTreeMap::new() }
    }

    /// No value at all: what a function that returns nothing returns.
    pub const fn empty() -> Self {
        Self { data: Bytes::new(), encoding: JSON, metadata: BTreeMap::new() }
    }

    /// The bytes as text, if they are text.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.data).ok()
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Self::json(text)
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::json(text)
    }
}

/// Text as it is; other bytes as `0x…`.
impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_text() {
            Some(text) => f.write_str(text),
            None => write!(f, "0x{}", hex(&self.data)),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

mod cbor_bytes {
    use super::{ByteSlice, Bytes};
    use minicbor::decode::Decoder;
    use minicbor::encode::{Encoder, Write};

    pub(super) fn encode<C, W: Write>(
        bytes: &Bytes,
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        minicbor::Encode::encode(<&ByteSlice>::from(&bytes[..]), e, ctx)
    }

    pub(super) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Bytes, minicbor::decode::Error> {
        Ok(Bytes::copy_from_slice(d.bytes()?))
    }
}

/// Bytes in a text transcript: text stands as it is, anything else as hexadecimal behind a mark.
mod text_bytes {
    use super::{Bytes, hex};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    const HEX: &str = "hex:";
    const TEXT: &str = "text:";

    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.starts_with(HEX) || text.starts_with(TEXT) => {
                serializer.serialize_str(&format!("{TEXT}{text}"))
            }
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.serialize_str(&format!("{HEX}{}", hex(bytes))),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Some(rest) = text.strip_prefix(TEXT) {
            return Ok(Bytes::copy_from_slice(rest.as_bytes()));
        }
        let Some(digits) = text.strip_prefix(HEX) else { return Ok(Bytes::from(text)) };
        let digits = digits.as_bytes();
        if digits.len() % 2 != 0 {
            return Err(D::Error::custom("an odd number of hexadecimal digits"));
        }
        let byte = |pair: &[u8]| Some(nibble(pair[0])? << 4 | nibble(pair[1])?);
        let bytes = digits.chunks_exact(2).map(byte).collect::<Option<Vec<u8>>>();
        bytes.map(Bytes::from).ok_or_else(|| D::Error::custom("not a hexadecimal digit"))
    }

    fn nibble(digit: u8) -> Option<u8> {
        (digit as char).to_digit(16).map(|value| value as u8)
    }
}
