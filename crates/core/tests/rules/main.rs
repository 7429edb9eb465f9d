//! The rules of scheduling and replay, each as a story: a workflow, a script of activations, and everything it decided.
//!
//! `check` plays each script whole, evicted between all turns and twice side by side, so what a test here shows it shows
//! of live runs and of replays.
#![allow(clippy::result_large_err, reason = "a failure is as large as the core makes it")]

mod bounded;
mod commands;
mod costs;
mod dropping;
mod formats;
mod golden;
mod identity;
mod ids;
mod joins;
mod kit;
mod message_order;
mod moving;
mod nondeterminism;
mod order;
mod patches;
mod pausing;
mod permutations;
mod race_of;
mod races;
mod replay;
mod rounds;
mod seqs;
mod turns;
mod units;
