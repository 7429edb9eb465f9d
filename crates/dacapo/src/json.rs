//! How typed values become payloads and back: JSON, one payload for each argument.
//!
//! `()` and `None` have no bytes: they become a payload of encoding `binary/null`, as in Temporal. Such a payload, JSON
//! `null` and a payload without bytes all decode as `()` and `None`. Payloads of commands are compared byte by byte on
//! replay, so a type whose encoding differs from time to time has no place in them: use `BTreeMap`, never `HashMap`.
//!
//! What cannot be decoded is treated by whose it is:
//!
//! - what the run itself recorded or was started with (its input, results of activities, children, side effects and promises,
//!   durable keys): the activation fails and says why. The run stays open, and goes on once code is deployed that reads it.
//! - what outsiders send: an update is rejected, a query answered, and a wait for a signal ended, with a failure of type
//!   [`BAD_INPUT`]; a handler of signals fails alone.
//! - an activity's input: the attempt fails with [`BAD_INPUT`], which is not tried again.

use std::cell::Cell;

pub use serde_json::{Value, json};

use dacapo_core::{ExternalPayload, Failure, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::type_names::short_type_name;

/// The type of failures that report an input that does not decode.
pub const BAD_INPUT: &str = "BadInput";

/// The type of failures that report a payload whose bytes are kept in a store that this build does not read.
pub const EXTERNAL_PAYLOAD: &str = "ExternalPayload";

/// The type of failures that report a value that cannot be encoded.
pub const BAD_OUTPUT: &str = "BadOutput";

/// The most bytes of the buffer that a thread keeps for its next value.
const KEPT: usize = 64 << 10;

thread_local! {
    /// The buffer into which values are written.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Encodes a value as JSON. The few values that JSON cannot hold, such as a map whose keys are no strings, are a failure of
/// type [`BAD_OUTPUT`].
///
/// ```
/// use dacapo::{decode, encode, Payload};
/// assert_eq!(encode(&7)?, Payload::json("7"));
/// assert_eq!(encode(&())?, Payload::empty());
/// assert_eq!(decode::<Option<u8>>(&Payload::empty())?, None);
/// # Ok::<(), dacapo::Failure>(())
/// ```
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Payload, Failure> {
    // Taken out meanwhile: the value may encode others. One copy of the right size is cheaper than a vector that grows.
    let mut buffer = BUFFER.take();
    buffer.clear();
    let written = serde_json::to_writer(&mut buffer, value).map(|()| match &buffer[..] {
        b"null" => Payload::empty(),
        json => Payload::json(json.to_vec()),
    });
    if buffer.capacity() <= KEPT {
        BUFFER.set(buffer);
    }
    written.map_err(|error| {
        let message = format!(
            "a value of type `{}` cannot be encoded as JSON: {error}; use a type that JSON can hold",
            short_type_name::<T>()
        );
        Failure::application(message).typed(BAD_OUTPUT).non_retryable()
    })
}

/// Decodes a payload of JSON. What does not decode is a failure of type [`BAD_INPUT`] that names the type and what came. A
/// payload whose bytes are kept in another store is a failure of type [`EXTERNAL_PAYLOAD`] that names the place.
pub fn decode<T: DeserializeOwned>(payload: &Payload) -> Result<T, Failure> {
    serde_json::from_slice(bytes(payload)?).map_err(|error| {
        let message =
            format!("the value cannot be read as `{}`: {error}; it is {}", short_type_name::<T>(), excerpt(payload));
        Failure::application(message).typed(BAD_INPUT).non_retryable()
    })
}

/// The JSON of a payload.
pub(crate) fn bytes(payload: &Payload) -> Result<&[u8], Failure> {
    let bytes = inline(payload)?;
    Ok(if bytes.is_empty() { b"null" } else { bytes })
}

/// The bytes of a payload, which must not be kept in another store.
pub(crate) fn inline(payload: &Payload) -> Result<&[u8], Failure> {
    let external =
        |error: ExternalPayload| Failure::application(error.to_string()).typed(EXTERNAL_PAYLOAD).non_retryable();
    payload.bytes().map(|bytes| &bytes[..]).map_err(external)
}

/// A payload for a message to people.
pub(crate) fn excerpt(payload: &Payload) -> String {
    const MOST: usize = 200;
    let text = payload.to_string();
    match text.char_indices().nth(MOST) {
        None if text.is_empty() => "nothing".to_owned(),
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…` ({} bytes)", &text[..end], payload.inline_size()),
    }
}
