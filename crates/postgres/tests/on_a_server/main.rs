//! The store on a real server, which `cargo xtask postgres` starts.

mod claims;
mod conformance;
mod kit;
mod lock_order;
mod locks;
mod membership;
mod meters;
mod nodes;
mod notes;
mod one_trip;
mod pooler;
mod schema;
mod traffic;
mod unique;
