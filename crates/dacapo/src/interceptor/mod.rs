//! Interceptors: code of the app around calls of clients, runs of workflows and attempts of activities.

mod activity;
mod client;
mod messages;
mod next;
mod workflow;

use std::future::Future;
use std::pin::Pin;

use dacapo_client::{ClientCall, ClientFuture, ClientReply};
use dacapo_core::{Failure, Payload};

pub use activity::ActivityCall;
pub(crate) use activity::intercepted_activity;
pub(crate) use client::InterceptedClient;
pub use messages::{InboundKind, InboundMessage, OutboundCommand, OutboundKind};
pub(crate) use messages::{check_message, outbound_headers};
pub use next::Next;
pub use workflow::WorkflowCall;
pub(crate) use workflow::intercepted_workflow;

/// The code of a workflow or of an attempt of an activity, wrapped or not.
pub type CodeFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Wraps what an app calls and what calls it: for tracing contexts, authorisation and other headers.
///
/// Every method passes on by default. [`Dacapo::intercept`](crate::Dacapo::intercept) adds an interceptor; the one that was added
/// first is the outermost.
///
/// The methods `workflow`, `message` and `command` are part of workflow code: they are played again on replay and must be
/// deterministic, so they look at what they are given and at nothing else. Headers are not compared on replay: the recorded ones hold.
///
/// Exports, imports and [`check_open_runs`](crate::App::check_open_runs) read and write the store itself and pass no interceptor.
///
/// ```
/// use dacapo::prelude::*;
/// use dacapo::{ActivityCall, CodeFuture, Interceptor, Next, OutboundCommand};
///
/// /// Hands the header `tenant` on from a run to all that it starts, and refuses activities without it.
/// struct Tenant;
///
/// impl Interceptor for Tenant {
///     fn command(&self, command: &mut OutboundCommand<'_>) {
///         if let Some(tenant) = command.run.headers.get("tenant") {
///             command.headers.insert("tenant".into(), tenant.clone());
///         }
///     }
///
///     fn activity(&self, call: ActivityCall, next: Next<ActivityCall, CodeFuture>) -> CodeFuture {
///         match call.ctx.info().headers.contains_key("tenant") {
///             true => next.run(call),
///             false => Box::pin(async { Err(Failure::application("no tenant was given").non_retryable()) }),
///         }
///     }
/// }
///
/// # async fn serve() -> dacapo::Result<()> {
/// let orders = Dacapo::open("memory:").await?.intercept(Tenant);
/// # Ok(()) }
/// ```
pub trait Interceptor: Send + Sync + 'static {
    /// Wraps a call of a client of this app, by a handle, a start or the client itself.
    fn client(&self, call: ClientCall, next: Next<ClientCall, ClientFuture<ClientReply>>) -> ClientFuture<ClientReply> {
        next.run(call)
    }

    /// Wraps an attempt of an activity. Code that blocks its thread is run when the future is first polled.
    fn activity(&self, call: ActivityCall, next: Next<ActivityCall, CodeFuture>) -> CodeFuture {
        next.run(call)
    }

    /// Looks at the progress that an attempt reports, and may change it.
    fn heartbeat(&self, info: &crate::ActivityInfo, details: &mut Payload) {
        let _ = (info, details);
    }

    /// Wraps a workflow's function, from the run's first turn to its end. Deterministic.
    fn workflow(&self, call: WorkflowCall, next: Next<WorkflowCall, CodeFuture>) -> CodeFuture {
        next.run(call)
    }

    /// Looks at a message before the handler of the workflow does. A failure rejects an update, answers a query, and keeps a
    /// signal from its handler, whose failure it is. A signal that the workflow awaits with `next_signal` or takes with `try_signal`
    /// is looked at as it is taken, and a failure is the result of the wait. Deterministic.
    fn message(&self, message: &InboundMessage<'_>) -> Result<(), Failure> {
        let _ = message;
        Ok(())
    }

    /// Looks at what a workflow asks for, and may add headers to it. Deterministic.
    fn command(&self, command: &mut OutboundCommand<'_>) {
        let _ = command;
    }
}
