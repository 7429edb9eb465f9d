//! A web shop: orders come in over HTTP, each is a durable checkout, and its activities share pools of connections.
//!
//! - `shop`: what the activities share, and the activities themselves.
//! - `checkout`: the workflow, in the four versions of a deploy story.
//! - `service`: the HTTP side.
//! - `stuck`: what is stuck, for people.

pub mod checkout;
pub mod order;
pub mod pool;
pub mod reply;
pub mod service;
pub mod shop;
pub mod stuck;
