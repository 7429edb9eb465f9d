//! The embedded backend: it hosts runs over any store.
//!
//! A run lives in memory while it has work and for a while after; everything it does is a write to the store, and memory
//! never runs ahead of what is committed. Wake-ups are pushed: a message for a run queues it, and a thread plays it. Nothing
//! is polled, and an engine with nothing to do does nothing.
//!
//! Start reading at `turn/mod.rs`, which shows the way from a message for a run to a committed turn and its effects,
//! then at `shared.rs`, which lists the owners of the engine's state.

mod activity;
mod api;
mod client;
mod crash_guard;
mod encode;
mod engine;
mod host;
mod lifecycle;
mod names;
mod nodes;
mod options;
mod read;
mod report;
mod run;
mod shared;
mod store_guard;
mod timer;
mod turn;
mod workers;
mod writes;

pub use api::start::NewStart;
pub use client::StoreClient;
pub use crash_guard::limits::CrashLimits;
pub use dacapo_client::{ActivityState, PendingActivity, Problem};
pub use engine::Engine;
pub use host::blocking::blocking;
pub use host::clock::WallClock;
pub use host::threads::{Threads, force_exit_after};
pub use host::{Host, Steady, Work, WorkKind};
pub use lifecycle::shutdown_state::ShutdownReport;
pub use options::{Cache, DEFAULT_QUEUE, Options, features};
pub use read::archive::check_import;
pub use read::describe::{RunDescription, StuckGroup};
pub use read::outcome::next_of;
pub use read::{Reader, RunId};
pub use run::started::StartedAs;
pub use run::waiters::{UpdateStage, WaitFor};
