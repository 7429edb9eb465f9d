//! The policies, through the public interface: what they choose, what is logged of it, and what a log is worth.
//!
//! All randomness is seeded (S1-70): the tests do the same on every machine and every day.

#![allow(
    clippy::disallowed_methods,
    reason = "sources are read and threads started to look at the policies from outside"
)]

mod deterministic;
mod executor_side;
mod forms;
mod golden;
mod kit;
mod malformed;
mod properties;
mod random;
mod replay;
mod sources;
