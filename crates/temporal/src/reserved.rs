//! Names that this backend uses itself: of queries, updates, headers and activities. Programs must not use names that begin so.

use dacapo_client::{Error, Result};
use dacapo_core::Headers;

/// The number of the names and flags below, and of what the values under these names look like. It is raised when a worker of the
/// number before would misread what this one writes. Nothing reads it.
#[cfg(test)]
const CLUSTER_NUMBER: u64 = 1;

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
    use dacapo_client::StuckCause;
    use dacapo_core::{Failure, Order, Payload, Pins, Signal, to_stored};
    use dacapo_testkit::assert_golden;

    use super::*;
    use crate::flags::flags_of;
    use crate::player::cause_of;
    use crate::player::promises::Resolve;
    use crate::token::token_to_text;

    /// What workers and clients of Dacapo leave on a cluster for each other, beside what Temporal defines.
    #[test]
    fn names_and_flags_on_a_cluster_are_what_their_number_says() {
        let root_first = Pins { order: Order::RootFirst, ..Pins::default() };
        let signals = [Signal { name: "go".into(), input: vec![Payload::json("1")], ..Signal::default() }];
        let hex: String = to_stored(&signals[..]).iter().map(|byte| format!("{byte:02x}")).collect();
        let resolve = Resolve { promise: "consent".into(), result: Ok(Payload::json("true")) };
        let resolve = serde_json::to_string(&resolve).unwrap();
        let stuck = "dacapo:stuck/panic";
        assert_eq!(cause_of(&Failure::application("no").typed(stuck)), Some(StuckCause::Panic));
        let flags = |pins: &Pins| serde_json::to_string(&flags_of(pins)).unwrap();
        let (first, pinned, token) = (flags(&Pins::default()), flags(&root_first), token_to_text(&[0, 255, 7]));
        let written = format!(
            "language flags {first}\nlanguage flags of order root_first {pinned}\nheader {PINS} {pinned}\n\
             header {START} \"01a1ef60-e76e-7569-bb93-4ca70a0d0270\"\nheader {LEFT_SIGNALS} {hex}\nquery {PUBLISHED}\n\
             query {INSPECT}\nquery {STACK_TRACE}\nupdate {RESOLVE_PROMISE} {resolve}\nactivity {SIDE_EFFECT}NAME\n\
             failure of a task {stuck}\ncompletion token {token}\n"
        );
        assert_golden(env!("CARGO_MANIFEST_DIR"), "cluster-names", CLUSTER_NUMBER, "txt", &written);
    }

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
