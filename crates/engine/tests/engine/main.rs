//! The engine under the engine kit: one thread, virtual time, every cache.

mod activities;
mod cancelling;
mod children;
mod continuing;
mod heartbeats;
mod kit;
mod local;
mod messages;
mod starting;
mod turns;
