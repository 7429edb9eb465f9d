//! The Temporal backend: workflows and activities of Dacapo on a Temporal cluster.
//!
//! [`Cluster`] is a connection to a namespace; [`ClusterWorkers`] plays workflows and runs activities of its queues; [`ClusterClient`] is
//! what callers use. Temporal's own core polls the server, keeps histories and matches commands; this crate translates its
//! activations for the driver of turns in `dacapo-worker`, and the completions back. It knows no store.

mod activities;
mod address;
mod client;
mod connect;
mod convert;
mod core_worker;
mod flags;
mod history_json;
mod host;
mod numbers;
mod player;
mod proto;
mod replay;
mod reserved;
mod serving;
mod token;

pub use address::{Address, BadAddress, DEFAULT_START_TO_CLOSE};
pub use client::{ClusterClient, capabilities};
pub use connect::Cluster;
pub use replay::{OpenRuns, replay_json, transcript_of};
pub use serving::{ClusterWorkers, Report, ServeOptions};
