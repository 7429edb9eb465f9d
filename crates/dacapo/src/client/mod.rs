//! The program's side: opening a store, serving, starting runs, and talking to them.

mod app;
mod archive;
mod build_name;
#[cfg(feature = "temporal")]
mod cluster;
mod connection;
#[cfg(feature = "control")]
mod control;
mod dacapo;
mod error;
mod filter;
mod handle;
mod into_name;
mod link;
mod opened;
mod runs;
mod serving;
mod signal;
mod start;
mod stop_signals;
mod transcript;
mod update;
mod url;

pub use app::App;
pub use archive::Imported;
pub use connection::Connection;
pub use dacapo::Dacapo;
pub use error::{Error, Result};
pub use filter::Filter;
pub use handle::Handle;
pub use into_name::{IntoName, IntoQueue};
pub use runs::Runs;
pub use signal::SignalCall;
pub use start::StartCall;
pub use update::{UpdateCall, UpdateHandle};
