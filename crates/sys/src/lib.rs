//! What needs `unsafe`, all in one place: a layer that SQLite calls, in C, and memory that is shared with a file.

pub mod log;
mod slots;

pub use slots::Slots;
