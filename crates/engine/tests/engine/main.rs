//! The engine under the engine kit: one thread, virtual time, every cache.

mod kit;
mod turns;
