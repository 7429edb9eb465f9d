//! The embedded backend: it hosts runs over any store.
//!
//! A run lives in memory while it has work and for a while after; everything it does is a write to the store, and memory
//! never runs ahead of what is committed. Wake-ups are pushed: whoever brings something for a run queues it, and a thread
//! plays it. Nothing is polled, and an engine with nothing to do does nothing.
//!
//! Start reading at `play.rs` (what came becomes a turn), then `translate.rs` (a turn becomes a write), then `commit.rs`
//! (what follows once it is durable).

mod answered;
mod archive;
mod attempts;
mod book;
mod cause;
mod checks;
mod clock;
mod closing;
mod commit;
mod desk;
mod drain;
mod engine;
mod error;
mod flaws;
mod host;
mod inner;
mod inputs;
mod live;
mod load;
mod locals;
mod look;
mod loud;
mod new_run;
mod options;
mod outside;
mod park;
mod picks;
mod play;
mod player;
mod quarantine;
mod records;
mod rehearsal;
mod reset;
mod retention;
mod retry;
mod runs;
mod send;
mod start;
mod threads;
mod timers;
mod traces;
mod translate;
mod trials;
mod waits;
mod zombies;

pub use archive::{check_import, next_of};
pub use desk::{ActivityState, PendingActivity};
pub use drain::ShutdownReport;
pub use engine::Engine;
pub use error::EngineError;
pub use flaws::Flaw;
pub use host::{Host, Work};
pub use look::{Description, Reader, RunId, StuckCause};
pub use options::{Cache, DEFAULT_QUEUE, Options};
pub use rehearsal::Unplayable;
pub use start::{NewStart, StartedAs};
pub use threads::{Threads, force_exit_after};
pub use waits::{UpdateStage, WaitFor};
