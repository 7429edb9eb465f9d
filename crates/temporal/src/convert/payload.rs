//! Payloads, and maps of them. The encoding is metadata of the name `encoding`, as in every Temporal SDK, so that workers and
//! clients of other languages read what this one writes.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use dacapo_core::{Headers, Name, Payload, PayloadData, PayloadDigest, PayloadReference};

use crate::proto::common;

const ENCODING: &str = "encoding";
/// The key and the value of a digest, which only Dacapo knows.
const DIGEST_KEY: &str = "dacapo-digest-key";
const DIGEST: &str = "dacapo-digest";
/// Marks the bytes as the place of the value, as JSON.
const REFERENCE: &str = "dacapo-reference";

pub(crate) fn payload_to_proto(payload: &Payload) -> common::Payload {
    let mut metadata: HashMap<String, Vec<u8>> =
        payload.metadata.iter().map(|(name, value)| (name.to_string(), value.to_vec())).collect();
    metadata.insert(ENCODING.to_owned(), payload.encoding.as_bytes().to_vec());
    if let Some(digest) = &payload.digest {
        metadata.insert(DIGEST_KEY.to_owned(), digest.key.as_bytes().to_vec());
        metadata.insert(DIGEST.to_owned(), digest.value.to_vec());
    }
    let data = match &payload.data {
        PayloadData::Inline(bytes) => bytes.to_vec(),
        PayloadData::Reference(reference) => {
            metadata.insert(REFERENCE.to_owned(), b"1".to_vec());
            serde_json::to_vec(reference).expect("a reference is text and a number")
        }
    };
    common::Payload { metadata, data, ..common::Payload::default() }
}

pub(crate) fn payload_from_proto(payload: common::Payload) -> Payload {
    let common::Payload { mut metadata, data, .. } = payload;
    let encoding = metadata.remove(ENCODING).map(text).unwrap_or_default();
    let reference = metadata.remove(REFERENCE).and_then(|_| serde_json::from_slice::<PayloadReference>(&data).ok());
    let data = match reference {
        Some(reference) => PayloadData::Reference(Box::new(reference)),
        None => PayloadData::Inline(data.into()),
    };
    let digest = match (metadata.remove(DIGEST_KEY), metadata.remove(DIGEST)) {
        (Some(key), Some(value)) => Some(Box::new(PayloadDigest { key: text(key), value: value.into() })),
        _ => None,
    };
    let metadata = metadata.into_iter().map(|(name, value)| (Name::from(name), Bytes::from(value))).collect();
    Payload { data, encoding, metadata, digest }
}

fn text(bytes: Vec<u8>) -> Name {
    Name::from(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn payloads_list(payloads: &[Payload]) -> Vec<common::Payload> {
    payloads.iter().map(payload_to_proto).collect()
}

/// None for no payload at all, as the server writes it.
pub(crate) fn payloads_to_proto(payloads: &[Payload]) -> Option<common::Payloads> {
    (!payloads.is_empty()).then(|| common::Payloads { payloads: payloads_list(payloads) })
}

pub(crate) fn payloads_from_proto(payloads: Option<common::Payloads>) -> Vec<Payload> {
    payloads.map(|payloads| payloads.payloads).unwrap_or_default().into_iter().map(payload_from_proto).collect()
}

/// The only payload of a result; a result without one is the empty payload.
pub(crate) fn first_from_proto(payloads: Option<common::Payloads>) -> Payload {
    payloads_from_proto(payloads).into_iter().next().unwrap_or_default()
}

pub(crate) fn headers_to_proto(headers: &Headers) -> HashMap<String, common::Payload> {
    headers.iter().map(|(name, payload)| (name.to_string(), payload_to_proto(payload))).collect()
}

pub(crate) fn headers_from_proto(headers: HashMap<String, common::Payload>) -> Headers {
    map_from_proto(headers)
}

pub(crate) fn map_to_proto(map: &BTreeMap<Name, Payload>) -> HashMap<String, common::Payload> {
    headers_to_proto(map)
}

pub(crate) fn map_from_proto(map: HashMap<String, common::Payload>) -> BTreeMap<Name, Payload> {
    map.into_iter().map(|(name, payload)| (name.into(), payload_from_proto(payload))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Payload> {
        let metadata = BTreeMap::from([(Name::from("codec"), Bytes::from_static(b"zlib"))]);
        let digest = PayloadDigest { key: "2026-11".into(), value: Bytes::from_static(&[1, 2]) };
        let reference = PayloadReference {
            store: "s3://blobs".into(),
            key: "ab/12".into(),
            size: 5_000_000,
            digest: "sha-256:00ff".into(),
        };
        vec![
            Payload::json("{\"a\":1}"),
            Payload::empty(),
            Payload::new("binary/plain".into(), Bytes::from_static(&[0xff, 0xfe])),
            Payload { metadata, ..Payload::json("text") },
            Payload { digest: Some(Box::new(digest)), ..Payload::json("cipher") },
            Payload { data: PayloadData::Reference(Box::new(reference)), ..Payload::json("") },
        ]
    }

    #[test]
    fn payload_of_every_kind_comes_back() {
        for payload in samples() {
            assert_eq!(payload_from_proto(payload_to_proto(&payload)), payload);
        }
        let list = samples();
        assert_eq!(payloads_from_proto(payloads_to_proto(&list)), list);
        assert_eq!(payloads_to_proto(&[]), None);
        let headers = Headers::from([("tenant".into(), Payload::json("\"ada\""))]);
        assert_eq!(headers_from_proto(headers_to_proto(&headers)), headers);
    }

    #[test]
    fn unit_value_is_written_as_other_sdks_write_it() {
        let unit = payload_to_proto(&Payload::empty());
        assert_eq!((unit.metadata["encoding"].as_slice(), unit.data.as_slice()), (&b"binary/null"[..], &b""[..]));
        assert_eq!(first_from_proto(None), Payload::empty());
    }
}
