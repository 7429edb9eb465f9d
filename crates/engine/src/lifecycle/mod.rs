//! From opening to shutdown.

pub(crate) mod retention;
pub(crate) mod shutdown;
pub(crate) mod zombies;
