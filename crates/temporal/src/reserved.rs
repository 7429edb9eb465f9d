//! Names that this backend uses itself: of queries, updates, headers and activities. Programs must not use names that begin so.

use dacapo_client::{Error, Result};
use dacapo_core::Headers;

/// The begin of every reserved name.
pub(crate) const PREFIX: &str = "dacapo:";

/// The query that answers with the snapshot that the run published last.
pub(crate) const PUBLISHED: &str = "dacapo:published";
/// The query that answers with what each unit waits for.
pub(crate) const INSPECT: &str = "dacapo:inspect";
/// The query of `temporal workflow stack`.
pub(crate) const STACK_TRACE: &str = "__stack_trace";
/// The update that resolves a promise.
pub(crate) const RESOLVE_PROMISE: &str = "dacapo:resolve-promise";
/// The header that carries signals which a run left to the run that continues it.
pub(crate) const LEFT_SIGNALS: &str = "dacapo:left-signals";
/// The header with the settings that the start of a run pins.
pub(crate) const PINS: &str = "dacapo:pins";
/// The header that tells the start of a run from others with the same request id.
pub(crate) const START: &str = "dacapo:start";
/// The begin of the activity type of a side effect; its name follows.
pub(crate) const SIDE_EFFECT: &str = "dacapo:side-effect/";

/// # Errors
/// A message of a program has a reserved name.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    match name.starts_with(PREFIX) {
        true => Err(reserved(what, name)),
        false => Ok(()),
    }
}

/// # Errors
/// A header of a program has a reserved name.
pub(crate) fn check_headers(headers: &Headers) -> Result<()> {
    headers.keys().try_for_each(|name| check_name("header", name))
}

fn reserved(what: &str, name: &str) -> Error {
    Error::InvalidArgument(format!(
        "{what} {name:?} cannot be sent: names that begin with {PREFIX:?} are reserved. Choose another name"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_of_messages_and_headers_are_refused() {
        for name in [PUBLISHED, INSPECT, RESOLVE_PROMISE, LEFT_SIGNALS, PINS, START, SIDE_EFFECT] {
            assert!(check_name("query", name).unwrap_err().to_string().contains("are reserved"), "{name}");
            let headers = Headers::from([(name.into(), dacapo_core::Payload::empty())]);
            assert!(check_headers(&headers).is_err(), "{name}");
        }
        assert_eq!(check_name("signal", "order"), Ok(()));
    }
}
