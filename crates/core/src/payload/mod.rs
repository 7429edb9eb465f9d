//! Payloads: the encoded values that user code passes.

mod digest;
mod hex;
mod reference;
mod text;

pub use digest::PayloadDigest;
pub use reference::{ExternalPayload, PayloadReference};

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::Name;
use hex::hex;
use text::PayloadText;

/// Named payloads sent with a call as metadata: tracing, authentication, data that an interceptor adds.
pub type Headers = BTreeMap<Name, Payload>;

/// One encoded value. The core never looks inside; it only compares.
#[derive(Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(into = "PayloadText", try_from = "PayloadText")]
pub struct Payload {
    /// The encoded bytes, or where they are kept.
    #[n(0)]
    pub data: PayloadData,
    /// The encoding of the bytes; `json/plain` by default.
    #[n(1)]
    pub encoding: Name,
    /// Other data that a converter or codec keeps about the bytes.
    #[n(2)]
    #[cbor(with = "cbor_metadata")]
    pub metadata: BTreeMap<Name, Bytes>,
    /// The digest by which replay compares payloads whose bytes differ each time, as those of a cipher do. Without one,
    /// replay compares the bytes.
    #[n(3)]
    pub digest: Option<Box<PayloadDigest>>,
}

/// The encoded bytes of a payload, or where they are kept.
#[derive(Clone, PartialEq, Eq)]
pub enum PayloadData {
    /// The bytes are part of the record.
    Inline(Bytes),
    /// The bytes are kept in another store. This build writes no such payload, and does not read its bytes.
    Reference(Box<PayloadReference>),
}

const JSON: Name = Name::from_static("json/plain");
const NULL: Name = Name::from_static("binary/null");

impl Payload {
    /// Creates a payload of bytes in this encoding.
    pub const fn new(encoding: Name, bytes: Bytes) -> Self {
        Self { data: PayloadData::Inline(bytes), encoding, metadata: BTreeMap::new(), digest: None }
    }

    /// Creates a payload of JSON text. The text is taken as it is.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self::new(JSON, text.into())
    }

    /// Creates a payload without a value, such as the result of a function that returns nothing: no bytes, in the encoding
    /// `binary/null`.
    pub const fn empty() -> Self {
        Self::new(NULL, Bytes::new())
    }

    /// Returns whether the payload has no value: its encoding is `binary/null`.
    pub fn is_null(&self) -> bool {
        self.encoding == NULL
    }

    /// Returns the encoded bytes.
    ///
    /// # Errors
    /// [`ExternalPayload`], if they are kept in another store.
    pub fn bytes(&self) -> Result<&Bytes, ExternalPayload> {
        match &self.data {
            PayloadData::Inline(bytes) => Ok(bytes),
            PayloadData::Reference(reference) => Err(ExternalPayload(reference.clone())),
        }
    }

    /// Returns how many bytes the record holds of the payload and of its metadata. Bytes that are kept in another store do not count.
    pub fn inline_size(&self) -> usize {
        let data = match &self.data {
            PayloadData::Inline(bytes) => bytes.len(),
            PayloadData::Reference(_) => 0,
        };
        self.metadata.iter().fold(data, |size, (name, value)| size + name.len() + value.len())
    }

    /// Returns the bytes as text, if they are in the record and are text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            PayloadData::Inline(bytes) => std::str::from_utf8(bytes).ok(),
            PayloadData::Reference(_) => None,
        }
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

/// Text as it is; other bytes as `0x…`; bytes that are kept in another store as their place.
impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            PayloadData::Inline(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => f.write_str(text),
                Err(_) => write!(f, "0x{}", hex(bytes)),
            },
            PayloadData::Reference(reference) => write!(f, "<{reference}>"),
        }
    }
}

/// Prints the payload as [`fmt::Display`] does, but one without a value as `null`.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() { f.write_str("null") } else { fmt::Display::fmt(self, f) }
    }
}

/// Bytes are a byte string, a reference is an array: the common form has no tag.
impl<C> Encode<C> for PayloadData {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        match self {
            Self::Inline(bytes) => e.bytes(bytes)?.ok(),
            Self::Reference(reference) => reference.encode(e, ctx),
        }
    }
}

impl<'b, C> Decode<'b, C> for PayloadData {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        match d.datatype()? {
            minicbor::data::Type::Array => Ok(Self::Reference(Box::new(PayloadReference::decode(d, ctx)?))),
            _ => Ok(Self::Inline(Bytes::copy_from_slice(d.bytes()?))),
        }
    }
}

mod cbor_metadata {
    use super::{BTreeMap, Bytes, Decoder, Encoder, Name, Write};

    pub(super) fn encode<C, W: Write>(
        metadata: &BTreeMap<Name, Bytes>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.map(metadata.len() as u64)?;
        metadata.iter().try_for_each(|(name, value)| e.str(name)?.bytes(value)?.ok())
    }

    pub(super) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<BTreeMap<Name, Bytes>, minicbor::decode::Error> {
        let pairs = d.map()?.ok_or_else(|| minicbor::decode::Error::message("a map without a length"))?;
        if pairs == 0 {
            return Ok(BTreeMap::new()); // As nearly every payload; collecting nothing costs more.
        }
        (0..pairs).map(|_| Ok((d.decode()?, Bytes::copy_from_slice(d.bytes()?)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Payload {
        let reference = PayloadReference {
            store: "s3://blobs".into(),
            key: "ab/12".into(),
            size: 5_000_000,
            digest: "sha-256:00ff".into(),
        };
        Payload { data: PayloadData::Reference(Box::new(reference)), ..Payload::json("") }
    }

    fn samples() -> Vec<Payload> {
        let metadata = BTreeMap::from([
            (Name::from("codec"), Bytes::from_static(b"zlib")),
            (Name::from("nonce"), Bytes::from_static(&[0xff, 0])),
        ]);
        let digest = PayloadDigest { key: "2026-11".into(), value: Bytes::from_static(&[1, 2]) };
        vec![
            Payload::json("{\"a\":1}"),
            Payload::empty(),
            Payload::new("binary/plain".into(), Bytes::from_static(&[0xff, 0xfe])),
            Payload { metadata, ..Payload::json("text") },
            Payload { digest: Some(Box::new(digest)), ..Payload::json("cipher") },
            reference(),
        ]
    }

    #[test]
    fn payload_of_every_kind_is_read_back_from_both_forms() {
        for payload in samples() {
            let bytes = minicbor::to_vec(&payload).unwrap();
            assert_eq!(minicbor::decode::<Payload>(&bytes).unwrap(), payload, "{payload}");
            let text = serde_json::to_string(&payload).unwrap();
            assert_eq!(serde_json::from_str::<Payload>(&text).unwrap(), payload, "{text}");
        }
    }

    #[test]
    fn text_form_shows_text_as_text_and_other_bytes_in_hexadecimal() {
        let text: Vec<String> = samples().iter().map(|payload| serde_json::to_string(payload).unwrap()).collect();
        assert_eq!(
            text,
            [
                r#""{\"a\":1}""#,
                r#"{"encoding":"binary/null"}"#,
                r#"{"hex":"fffe","encoding":"binary/plain"}"#,
                r#"{"text":"text","encoding":"json/plain","metadata":{"codec":"zlib","nonce":{"hex":"ff00"}}}"#,
                r#"{"text":"cipher","encoding":"json/plain","digest":{"key":"2026-11","value":"0102"}}"#,
                r#"{"reference":{"store":"s3://blobs","key":"ab/12","size":5000000,"digest":"sha-256:00ff"},"encoding":"json/plain"}"#,
            ]
        );
    }

    #[test]
    fn bytes_of_a_reference_are_an_error_that_names_the_place() {
        let payload = reference();
        assert_eq!(
            payload.bytes().unwrap_err().to_string(),
            "payload is kept in \"s3://blobs\" under key \"ab/12\" (5000000 bytes, digest sha-256:00ff): this build reads inline \
             payloads only, so read it with a build that has this payload store"
        );
        assert_eq!((payload.as_text(), payload.inline_size()), (None, 0));
        assert_eq!(payload.to_string(), "<5000000 bytes in \"s3://blobs\" under key \"ab/12\">");
    }

    /// A payload is in every command and result: a word more would be paid by each.
    #[test]
    fn reference_takes_no_room_in_an_inline_payload() {
        assert_eq!(size_of::<PayloadData>(), size_of::<Bytes>());
        assert_eq!(
            size_of::<Payload>(),
            size_of::<Bytes>() + size_of::<Name>() + size_of::<BTreeMap<Name, Bytes>>() + 8
        );
    }

    #[test]
    fn inline_payload_is_three_items_in_the_binary_form() {
        assert_eq!(minicbor::to_vec(Payload::empty()).unwrap(), b"\x83\x40\x6bbinary/null\xa0");
    }
}
