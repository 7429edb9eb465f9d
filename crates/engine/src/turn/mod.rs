//! From the messages for a run to a committed turn and its effects.
//!
//! ```text
//!   inbox ──▶ turn ──▶ played ──▶ plan ──▶ committed ──▶ effects
//!   drive.rs  make.rs (activate, record, validate, plan)  commit.rs   effects.rs
//! ```

pub(crate) mod answer;
pub(crate) mod choices;
pub(crate) mod close;
pub(crate) mod commit;
pub(crate) mod drive;
pub(crate) mod effects;
pub(crate) mod foreign_wake;
pub(crate) mod load;
pub(crate) mod make;
pub(crate) mod outcome;
pub(crate) mod plan;
pub(crate) mod replay;
pub(crate) mod reset;
pub(crate) mod rest;
pub(crate) mod stuck;
pub(crate) mod update_outcome;
pub(crate) mod validate;
