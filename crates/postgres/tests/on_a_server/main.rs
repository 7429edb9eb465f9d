//! The store on a real server, which `cargo xtask postgres` starts.

mod conformance;
mod meters;
mod nodes;
mod notes;
mod pooler;
mod schema;
mod traffic;
