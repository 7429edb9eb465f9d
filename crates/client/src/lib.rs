//! The client interface: what every backend offers to callers.
//!
//! [`Client`] is an object-safe trait over plain data, so that one program runs on the embedded engine, on PostgreSQL, on a
//! Temporal cluster and over the control API. All data can be serialised with serde; no type names a store or an engine. A
//! backend says what it can do ([`Capabilities`]), and refuses the rest by the name of the feature ([`Error::Unsupported`]).
//!
//! Serving workflows is not part of it: a client may serve nothing.

mod call;
mod capabilities;
mod client;
mod description;
mod digits;
mod error;
mod history;
mod list;
mod node;
mod reference;
mod requests;
mod run_history;
mod search;
mod status;
mod stuck;
mod unplayable;
#[cfg(test)]
mod wire_tests;

pub use call::{CALLS_NUMBER, ClientCall, ClientReply};
pub use capabilities::{Capabilities, Feature};
pub use client::{Client, ClientFuture, Progress};
pub use description::{ActivityState, Description, PendingActivity, Problem};
#[doc(hidden)]
pub use digits::grouped;
pub use error::{Error, Result, UnknownError};
pub use history::{EventKind, HistoryEvent, HistoryPage, OperationKind, OperationStart, RawHistory};
pub use list::{Count, Cursor, Filter, GroupBy, MAX_COUNT, Page};
pub use node::Node;
pub use reference::RunRef;
pub use requests::{
    CompleteActivity, IdConflict, PollUpdate, QueryRun, ResolvePromise, RunResult, SendSignal, SendUpdate, StartRun,
    Started, UpdateState, UpdateWait,
};
pub use run_history::RunHistory;
pub use search::{Comparison, Condition, Field, Literal, Order, Search, SearchError, Test};
pub use status::Status;
pub use stuck::{Stuck, StuckCause, StuckRuns};
pub use unplayable::Unplayable;
