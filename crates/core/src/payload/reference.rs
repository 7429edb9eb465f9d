//! Payloads whose bytes are kept in another store.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Name;

/// The place where the bytes of a payload are kept.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadReference {
    /// The store: its name, or its address.
    #[n(0)]
    pub store: Name,
    /// The key of the bytes in that store.
    #[n(1)]
    pub key: Name,
    /// The number of bytes.
    #[n(2)]
    pub size: u64,
    /// The digest of the bytes, with its algorithm: `sha-256:` and hexadecimal digits.
    #[n(3)]
    pub digest: Name,
}

impl fmt::Display for PayloadReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {:?} under key {:?}", self.size, self.store, self.key)
    }
}

/// The error of reading a payload whose bytes are kept in another store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "payload is kept in {:?} under key {:?} ({} bytes, digest {}): this build reads inline payloads only, so read it with a build that has this payload store",
    .0.store, .0.key, .0.size, .0.digest
)]
pub struct ExternalPayload(pub Box<PayloadReference>);
