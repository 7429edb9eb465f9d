//! Properties of the core over generated programs and generated worlds, and what it says to malformed input.
//!
//! Everything is drawn from fixed seeds with the core's own generator, so a failure is the same on every machine; it is
//! told as a program made small by deletion. `DACAPO_PROGRAMS` says how many programs are played.

#![allow(clippy::disallowed_macros, reason = "the coverage of generated programs is printed for people to read")]
#![allow(clippy::result_large_err, reason = "closures here return what user code returns, and that is a failure")]

mod changes;
mod corpus;
mod coverage;
mod examine;
mod found;
mod interpret;
mod ledger;
mod malformed_jobs;
mod malformed_transcripts;
mod plays;
mod program;
mod races;
mod repeats;
mod world;
