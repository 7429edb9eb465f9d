//! A PostgreSQL server for tests and benchmarks, and what may stand between it and its clients.
//!
//! [`Server::start`] starts one with a data directory of its own, on a free port of the loopback, with durable commits. A server refuses to
//! run as root, so root starts it as a user without rights. It ends, and its directory is removed, when the value is dropped.
//!
//! [`Pooler::start`] starts PgBouncer before one in the same way.
//!
//! Tests that only need a database share the one that [`SHARED_DATABASE`] names; `cargo xtask postgres` starts it. Each test has a schema
//! of its own ([`new_schema_url`]).

mod folder;
mod pooler;
mod port;
mod process;
mod programs;
mod proxy;
mod server;
mod shared;
mod user;

pub use pooler::Pooler;
pub use proxy::{Cutting, Proxy, Stopped};
pub use server::Server;
pub use shared::{SHARED_DATABASE, new_schema_url, schema_url, shared_url};
