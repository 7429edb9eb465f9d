//! Values that stores keep in columns of their own: the jobs of messages, results, memos, pins. Each begins with the number
//! of its format, so that a later build can recognise it.

use minicbor::{Decode, Encode};
use thiserror::Error;

/// The number of the format that this build writes and reads.
const FORMAT: u8 = 1;

/// The error of bytes that cannot be read as a stored value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoredError {
    /// There are no bytes.
    #[error("the stored value has no bytes: restore it from a backup")]
    Empty,
    /// Another build wrote it.
    #[error(
        "the stored value has format {found}, and this build reads format {known}: read it with the build that wrote it"
    )]
    UnknownFormat {
        /// The format found.
        found: u8,
        /// The format that this build reads.
        known: u8,
    },
    /// The bytes cannot be decoded.
    #[error("the stored value cannot be decoded: {0}")]
    Malformed(String),
}

/// Encodes a value for a store.
///
/// ```
/// use dacapo_core::{Payload, from_stored, to_stored};
/// let bytes = to_stored(&Payload::json("7"));
/// assert_eq!(from_stored::<Payload>(&bytes), Ok(Payload::json("7")));
/// ```
pub fn to_stored<T: Encode<()> + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.push(FORMAT);
    minicbor::encode(value, &mut bytes).expect("writing to memory cannot fail");
    bytes
}

/// Reads what [`to_stored`] wrote.
///
/// # Errors
/// [`StoredError`], if another build wrote it, or it is damaged.
pub fn from_stored<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, StoredError> {
    match bytes.split_first() {
        None => Err(StoredError::Empty),
        Some((&FORMAT, body)) => minicbor::decode(body).map_err(|error| StoredError::Malformed(error.to_string())),
        Some((&found, _)) => Err(StoredError::UnknownFormat { found, known: FORMAT }),
    }
}
