//! Typed workflows and activities, played by scripts: JSON in, printed turns out.

mod activities;
mod branches;
mod calls;
mod decoding;
mod handlers;
mod kit;
mod logging;
mod message_order;
mod register;
mod stateful;
mod values;
