//! The server's side: a router over a client.

mod call;
mod control;
mod events;
mod guard;
mod health;
mod open_api;
mod problem;
mod routes;
mod table;

pub use control::Control;
pub use open_api::open_api;
