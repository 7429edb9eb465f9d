//! What callers ask of the engine.

pub(crate) mod external_completion;
pub(crate) mod reset;
pub(crate) mod send;
pub(crate) mod start;
