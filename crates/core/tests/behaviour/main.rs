//! What workflow code may rely on: messages, phases, failures, cancellation, closing, eviction, and what happens to code
//! that breaks the rules.

#![allow(clippy::result_large_err, reason = "validators and queries return failures, as users write them")]

mod cancellation;
mod closing;
mod deadline;
mod double_play;
mod eviction;
mod failures;
mod handlers;
mod inspection;
mod kit;
mod leftovers;
mod panics;
mod phases;
mod policies;
mod queries;
mod refusals;
mod regressions;
mod signals;
mod updates;
mod values;
mod violations;
mod watching;
