//! How typed values become payloads and back: JSON, one payload for each argument.
//!
//! `()` is `null`, and no bytes at all decode as `null` does. Payloads of commands are compared byte by byte on replay, so
//! a type whose encoding differs from time to time has no place in them: use `BTreeMap`, never `HashMap`.
//!
//! What cannot be decoded is treated by whose it is:
//!
//! - what the run itself recorded or was started with (its input, results of activities, children, `run`s and promises,
//!   durable keys): the activation fails and says why. The run stays open, and goes on once code is deployed that reads it.
//! - what outsiders send: an update is rejected, a query answered, and a wait for a signal ended, with a failure of type
//!   [`BAD_INPUT`]; a handler of signals fails alone.
//! - an activity's input: the attempt fails with [`BAD_INPUT`], which is not tried again.

use std::any::type_name;

pub use serde_json::{Value, json};

use dacapo_core::{Failure, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The type of failures that say: what came does not decode.
pub const BAD_INPUT: &str = "BadInput";

/// The type of failures that say: this value cannot be encoded.
pub const BAD_OUTPUT: &str = "BadOutput";

/// A value as a payload. The few values that JSON cannot hold, such as a map whose keys are no strings, are a failure of
/// type [`BAD_OUTPUT`].
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Payload, Failure> {
    serde_json::to_vec(value).map(Payload::json).map_err(|error| {
        let message = format!("a value of type `{}` cannot be encoded as JSON: {error}", type_name::<T>());
        Failure::application(message).typed(BAD_OUTPUT).non_retryable()
    })
}

/// A payload as a value. What does not decode is a failure of type [`BAD_INPUT`] that names the type and what came.
pub fn decode<T: DeserializeOwned>(payload: &Payload) -> Result<T, Failure> {
    serde_json::from_slice(bytes(payload)).map_err(|error| {
        let message = format!("what came is no `{}`: {error}; it came as {}", type_name::<T>(), excerpt(payload));
        Failure::application(message).typed(BAD_INPUT).non_retryable()
    })
}

/// The JSON of a payload.
pub(crate) fn bytes(payload: &Payload) -> &[u8] {
    if payload.data.is_empty() { b"null" } else { &payload.data[..] }
}

/// A payload for a message to people.
pub(crate) fn excerpt(payload: &Payload) -> String {
    const MOST: usize = 200;
    let text = payload.to_string();
    match text.char_indices().nth(MOST) {
        None if text.is_empty() => "nothing".to_owned(),
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…` ({} bytes)", &text[..end], payload.data.len()),
    }
}
