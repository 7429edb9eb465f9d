//! Digests: comparing payloads whose bytes differ each time that they are written.

use bytes::Bytes;
use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::Payload;
use super::hex::HexText;
use crate::Name;

/// A keyed digest of a value before it was encrypted. Two payloads with digests of one key have the same meaning if their
/// digests are equal. This build writes none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadDigest {
    /// The id of the key with which the digest was made.
    pub key: Name,
    /// The digest.
    #[serde(with = "HexText")]
    pub value: Bytes,
}

impl<C> Encode<C> for PayloadDigest {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.array(2)?.str(&self.key)?.bytes(&self.value)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for PayloadDigest {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        match d.array()? {
            Some(2) => Ok(Self { key: d.decode()?, value: Bytes::copy_from_slice(d.bytes()?) }),
            _ => Err(minicbor::decode::Error::message("a digest is a key id and bytes")),
        }
    }
}

impl Payload {
    /// Returns whether two payloads mean the same: by their digests where both have one of the same key, otherwise by
    /// their bytes, encoding and metadata.
    pub fn has_meaning_of(&self, other: &Self) -> bool {
        match (&self.digest, &other.digest) {
            (Some(one), Some(other)) if one.key == other.key => one.value == other.value,
            _ => (&self.data, &self.encoding, &self.metadata) == (&other.data, &other.encoding, &other.metadata),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encrypted(bytes: &'static str, key: &'static str, digest: &'static [u8]) -> Payload {
        let digest = PayloadDigest { key: key.into(), value: Bytes::from_static(digest) };
        Payload { digest: Some(Box::new(digest)), ..Payload::json(bytes) }
    }

    #[test]
    fn digests_of_one_key_decide_and_bytes_decide_otherwise() {
        let one = encrypted("cipher 1", "k1", b"a");
        assert!(one.has_meaning_of(&encrypted("cipher 2", "k1", b"a")), "other bytes, same digest");
        assert!(!one.has_meaning_of(&encrypted("cipher 1", "k1", b"b")), "same bytes, other digest");
        assert!(!one.has_meaning_of(&encrypted("cipher 2", "k2", b"a")), "other bytes, digest of another key");
        assert!(one.has_meaning_of(&encrypted("cipher 1", "k2", b"b")), "same bytes, digest of another key");
        assert!(one.has_meaning_of(&Payload::json("cipher 1")), "same bytes, no digest");
        assert!(!one.has_meaning_of(&Payload::json("cipher 2")), "other bytes, no digest");
    }
}
