//! The engine under the engine kit: one thread, virtual time, every cache.

mod activities;
mod cancelling;
mod children;
mod continuing;
mod crashes;
mod draining;
mod fences;
mod from_outside;
mod heartbeats;
mod hostile;
mod kit;
mod late_answers;
mod limits;
mod local;
mod looking;
mod messages;
mod parking;
mod policies;
mod queues;
mod replaying;
mod resetting;
mod starting;
mod threads;
mod trouble;
mod turns;
mod zombies;
