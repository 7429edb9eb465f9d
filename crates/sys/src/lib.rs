//! All `unsafe` code of Dacapo: a layer that SQLite calls through its C interface, and memory that is shared with a
//! file.

#[cfg(feature = "sqlite")]
pub mod log;
mod slots;

pub use slots::Slots;
