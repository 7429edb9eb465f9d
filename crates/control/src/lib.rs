//! The control API: every call of a [`Client`](dacapo_client::Client) over HTTP, with roles, and the client of that.
//!
//! ```text
//! a program that serves runs                                  another one, or the command line
//! Client ── Control::router ── Unix socket or address ─ HTTP ── RemoteClient: a Client
//! ```
//!
//! [`Control::router`] is an `axum` router, which a program may also mount in a service of its own. `docs/control.md` lists its paths.

mod access;
mod remote;
mod server;
mod socket;

pub use access::{Access, Authoriser, Role, Token};
pub use remote::{RemoteClient, Target};
pub use server::{Control, open_api};
pub use socket::{ControlSocket, socket_of};
