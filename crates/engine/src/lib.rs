//! The embedded backend: it hosts runs over any store.
//!
//! A run lives in memory while it has work and for a while after; everything it does is a write to the store, and memory
//! never runs ahead of what is committed. Wake-ups are pushed: whoever brings something for a run queues it, and a thread
//! plays it. Nothing is polled, and an engine with nothing to do does nothing.
//!
//! Start reading at `play.rs` (what came becomes a turn), then `translate.rs` (a turn becomes a write), then `commit.rs`
//! (what follows once it is durable).

mod activity;
mod api;
mod crash_guard;
mod engine;
mod error;
mod host;
mod inner;
mod lifecycle;
mod options;
mod read;
mod report;
mod run;
mod timer;
mod turn;

pub use activity::task_queue::{ActivityState, PendingActivity};
pub use api::start::{NewStart, StartedAs};
pub use engine::Engine;
pub use error::EngineError;
pub use host::threads::{Threads, force_exit_after};
pub use host::{Host, Work};
pub use lifecycle::shutdown::ShutdownReport;
pub use options::{Cache, DEFAULT_QUEUE, Options};
pub use read::archive::{check_import, next_of};
pub use read::describe::{Description, Reader, RunId, StuckCause};
pub use read::replay_check::Unplayable;
pub use read::verify::Flaw;
pub use run::waiters::{UpdateStage, WaitFor};
