//! Real threads, a real file, real time: what the engine kit shows one step at a time must hold when everything happens at
//! once.

mod crash_settings;
mod deadlocks;
mod deploys;
mod hammer;
mod handing_on;
mod hostile;
mod moved_turns;
mod replay_check;
mod sending;
mod sharing;
mod stuck;
mod waiting;
