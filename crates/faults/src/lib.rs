//! A disk for tests: it forgets what was not flushed when its power is cut, and it fills up or fails where a test wants
//! it.
//!
//! [`Disk::new`] makes a folder. Every file that SQLite keeps there goes through a shim around SQLite's own layer for
//! files (`vfs.rs`), which is the default of the process from the first disk on, so the code under test is the real
//! code and opens its file by name. Reads and locks are the real ones. For writes the disk also tracks which of them a
//! flush has made durable ([`Disk::cut`], [`Disk::restore`]).

mod disk;
mod file;
mod vfs;
mod volume;

pub use disk::Disk;
pub use volume::{Counts, Fault, FileKind};
