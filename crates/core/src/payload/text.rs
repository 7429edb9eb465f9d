//! Payloads in text transcripts and in JSON: text where the bytes are text, otherwise hexadecimal digits.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::hex::{hex, unhex};
use super::{JSON, Payload, PayloadData, PayloadDigest, PayloadReference};
use crate::Name;

/// A payload as text. JSON is a string; any other payload is an object that names its encoding.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "payloads are JSON in a text, as in \"5\"; one of another encoding is an object that names it"
)]
pub(super) enum PayloadText {
    Json(String),
    Other(Box<OtherText>),
}

/// A payload that is not plain JSON. One without text, hexadecimal digits and reference has no bytes.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OtherText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<Box<PayloadReference>>,
    encoding: Name,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<Name, BytesText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Box<PayloadDigest>>,
}

/// Bytes as text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BytesText {
    Text(String),
    Hex { hex: String },
}

impl From<Bytes> for BytesText {
    fn from(bytes: Bytes) -> Self {
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex { hex: hex(&bytes) },
        }
    }
}

impl TryFrom<BytesText> for Bytes {
    type Error = String;

    fn try_from(text: BytesText) -> Result<Self, String> {
        match text {
            BytesText::Text(text) => Ok(text.into()),
            BytesText::Hex { hex } => unhex(&hex),
        }
    }
}

impl From<Payload> for PayloadText {
    fn from(payload: Payload) -> Self {
        let is_plain = payload.encoding == JSON && payload.metadata.is_empty() && payload.digest.is_none();
        let Payload { data, encoding, metadata, digest } = payload;
        let metadata = metadata.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
        let mut other = OtherText { encoding, metadata, digest, ..OtherText::default() };
        match data {
            PayloadData::Reference(reference) => other.reference = Some(reference),
            PayloadData::Inline(bytes) => match BytesText::from(bytes) {
                BytesText::Text(text) if is_plain => return Self::Json(text),
                BytesText::Text(text) => other.text = Some(text).filter(|text| !text.is_empty()),
                BytesText::Hex { hex } => other.hex = Some(hex),
            },
        }
        Self::Other(Box::new(other))
    }
}

impl TryFrom<PayloadText> for Payload {
    type Error = String;

    fn try_from(text: PayloadText) -> Result<Self, String> {
        let other = match text {
            PayloadText::Json(text) => return Ok(Self::json(text)),
            PayloadText::Other(other) => other,
        };
        let data = match (other.text, other.hex, other.reference) {
            (None, None, None) => PayloadData::Inline(Bytes::new()),
            (Some(text), None, None) => PayloadData::Inline(text.into()),
            (None, Some(digits), None) => PayloadData::Inline(unhex(&digits)?),
            (None, None, Some(reference)) => PayloadData::Reference(reference),
            _ => return Err("a payload has one of text, hex and reference".to_owned()),
        };
        let metadata = other.metadata.into_iter().map(|(name, text)| Ok((name, text.try_into()?)));
        let metadata = metadata.collect::<Result<_, String>>()?;
        Ok(Self { data, encoding: other.encoding, metadata, digest: other.digest })
    }
}
