//! Timers.

pub(crate) mod fire;
pub(crate) mod wheel;
