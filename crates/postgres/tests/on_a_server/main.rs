//! The store on a real server, which `cargo xtask postgres` starts.

mod conformance;
mod nodes;
mod schema;
mod traffic;
