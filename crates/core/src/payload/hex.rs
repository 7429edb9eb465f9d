//! Bytes as hexadecimal digits.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serializer};

/// Bytes as hexadecimal digits, for serde's `with`.
pub(super) struct HexText;

impl HexText {
    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        unhex(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(digits: &str) -> Result<Bytes, String> {
    let nibble = |digit: &u8| (*digit as char).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect();
    let bytes = bytes.filter(|_| rest.is_empty());
    bytes.map(Bytes::from).ok_or_else(|| format!("{digits:?} is no even number of hexadecimal digits"))
}
