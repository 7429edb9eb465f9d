//! The policies, through the public interface: what they choose, what is logged of it, and what a log is worth.
//!
//! All randomness is seeded (S1-70): the tests do the same on every machine and every day.

mod deterministic;
mod executor_side;
mod forms;
mod golden;
mod kit;
mod malformed;
mod properties;
mod random;
mod replay;
