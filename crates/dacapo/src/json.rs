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

use dacapo_core::{Failure, Name, Payload};
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
    let bytes = if payload.data.is_empty() { b"null" } else { &payload.data[..] };
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("what came is no `{}`: {error}; it came as {}", type_name::<T>(), excerpt(payload));
        Failure::application(message).typed(BAD_INPUT).non_retryable()
    })
}

/// The one value of a message, which may bring none at all. A failure names the message.
pub(crate) fn decode_message<T: DeserializeOwned>(what: &str, name: &Name, input: &[Payload]) -> Result<T, Failure> {
    decode(input.first().unwrap_or(&Payload::empty())).map_err(|mut failure| {
        failure.message = format!("{what} {name:?}: {}", failure.message);
        failure
    })
}

/// A payload for a message to people.
fn excerpt(payload: &Payload) -> String {
    const MOST: usize = 200;
    let text = payload.to_string();
    match text.char_indices().nth(MOST) {
        None if text.is_empty() => "nothing".to_owned(),
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…` ({} bytes)", &text[..end], payload.data.len()),
    }
}

/// The arguments of a call, taken one by one.
#[doc(hidden)]
pub struct Arguments {
    input: std::vec::IntoIter<Payload>,
    taken: usize,
}

impl Arguments {
    /// All that came.
    pub fn new(input: Vec<Payload>) -> Self {
        Self { input: input.into_iter(), taken: 0 }
    }

    /// The next argument. One that did not come is `null`, so that code can add an `Option`.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Failure> {
        self.taken += 1;
        let payload = self.input.next().unwrap_or_default();
        decode(&payload).map_err(|mut failure| {
            failure.message = format!("argument `{name}`: {}", failure.message);
            failure
        })
    }

    /// Nothing may be left, except for what says nothing.
    pub fn end(self) -> Result<(), Failure> {
        let extra = self.input.filter(|payload| !payload.data.is_empty() && &payload.data[..] != b"null").count();
        if extra == 0 {
            return Ok(());
        }
        let message = format!("{} arguments came, and {} are taken", self.taken + extra, self.taken);
        Err(Failure::application(message).typed(BAD_INPUT).non_retryable())
    }
}
