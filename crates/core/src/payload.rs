//! Payloads: the encoded values that user code passes.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::Name;

/// Named payloads sent with a call as metadata: tracing, authentication, data that an interceptor adds.
pub type Headers = BTreeMap<Name, Payload>;

/// One encoded value. The core never looks inside; it only compares the bytes.
#[derive(Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(into = "PayloadText", try_from = "PayloadText")]
pub struct Payload {
    /// The encoded bytes, before any codec such as encryption or compression.
    #[n(0)]
    #[cbor(with = "cbor_bytes")]
    pub data: Bytes,
    /// The encoding of the bytes; `json/plain` by default.
    #[n(1)]
    pub encoding: Name,
    /// Other data that a converter keeps about the bytes.
    #[n(2)]
    pub metadata: BTreeMap<Name, Name>,
}

const JSON: Name = Name::from_static("json/plain");

impl Payload {
    /// Creates a payload of JSON text. The text is taken as it is.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self { data: text.into(), encoding: JSON, metadata: BTreeMap::new() }
    }

    /// Creates a payload without a value: the result of a function that returns nothing.
    pub const fn empty() -> Self {
        Self { data: Bytes::new(), encoding: JSON, metadata: BTreeMap::new() }
    }

    /// Returns the bytes as text, if they are text.
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

/// A payload in a text transcript. JSON is written as a string; any other payload names its encoding.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PayloadText {
    Json(String),
    Other {
        #[serde(flatten)]
        data: DataText,
        encoding: Name,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<Name, Name>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DataText {
    Text(String),
    Hex(String),
}

impl From<Payload> for PayloadText {
    fn from(payload: Payload) -> Self {
        let text = payload.as_text().map(str::to_owned);
        match (text, payload) {
            (Some(text), Payload { encoding, metadata, .. }) if encoding == JSON && metadata.is_empty() => {
                Self::Json(text)
            }
            (Some(text), Payload { encoding, metadata, .. }) => {
                Self::Other { data: DataText::Text(text), encoding, metadata }
            }
            (None, Payload { data, encoding, metadata }) => {
                Self::Other { data: DataText::Hex(hex(&data)), encoding, metadata }
            }
        }
    }
}

impl TryFrom<PayloadText> for Payload {
    type Error = String;

    fn try_from(text: PayloadText) -> Result<Self, String> {
        let (data, encoding, metadata) = match text {
            PayloadText::Json(text) => return Ok(Self::json(text)),
            PayloadText::Other { data: DataText::Text(text), encoding, metadata } => {
                (Bytes::from(text), encoding, metadata)
            }
            PayloadText::Other { data: DataText::Hex(digits), encoding, metadata } => {
                (unhex(&digits)?, encoding, metadata)
            }
        };
        Ok(Self { data, encoding, metadata })
    }
}

fn unhex(digits: &str) -> Result<Bytes, String> {
    let nibble = |digit: &u8| (*digit as char).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect();
    let bytes = bytes.filter(|_| rest.is_empty());
    bytes.map(Bytes::from).ok_or_else(|| format!("{digits:?} is no even number of hexadecimal digits"))
}
