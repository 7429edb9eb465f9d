//! Several nodes on one store. Each plays the runs of the shards that it owns; what it does for the run of another node is
//! a row, and a notice for the owner.
//!
//! ```text
//!   gained ─▶ take_over.rs: timers, tasks, messages and stuck runs of the shards, as when a store is opened
//!   notified ▶ notices.rs: a message for an owned run ─▶ the run reads its messages again, and is played
//!              the end of a watched run ─▶ its callers here are answered
//!   lost ──▶ hand_over.rs: runs leave memory, results that wait are stored
//!   called ─▶ calls.rs: a call of a client that only the owner can carry out
//! ```
//!
//! A store that one process serves has none of this: that process owns every run.

pub(crate) mod calls;
pub(crate) mod claim;
pub(crate) mod common_time;
pub(crate) mod events;
pub(crate) mod hand_over;
pub(crate) mod list;
pub(crate) mod notices;
pub(crate) mod other_builds;
pub(crate) mod pause;
pub(crate) mod take_over;
pub(crate) mod watchers;
