//! The messages that come to a workflow and the commands that it gives, as interceptors see them.

use dacapo_core::{Failure, Headers, Name, Payload, Start};

use crate::Layers;

/// A message that comes to a handler of a workflow, or to a wait for a signal.
#[non_exhaustive]
pub struct InboundMessage<'m> {
    /// The data with which the run started, its headers among them.
    pub run: &'m Start,
    /// The kind of the message.
    pub kind: InboundKind,
    /// The name of the signal, update or query.
    pub name: &'m Name,
    /// The headers that came beside the arguments.
    pub headers: &'m Headers,
    /// The arguments.
    pub input: &'m [Payload],
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InboundKind {
    /// A signal.
    Signal,
    /// An update, before its validator.
    Update,
    /// A query.
    Query,
}

/// A command of a workflow that has headers, as interceptors see it.
#[non_exhaustive]
pub struct OutboundCommand<'c> {
    /// The kind of the command.
    pub kind: OutboundKind,
    /// The type of the activity or workflow, or the name of the signal.
    pub name: &'c Name,
    /// The data with which the run started, its headers among them.
    pub run: &'c Start,
    /// The headers that travel beside the arguments.
    pub headers: &'c mut Headers,
}

/// The kind of a command that has headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboundKind {
    /// An activity.
    Activity,
    /// A local activity.
    LocalActivity,
    /// A child workflow.
    Child,
    /// A signal to another run.
    SignalExternal,
    /// The next run of the chain.
    ContinueAsNew,
}

/// Shows a message to the interceptors. The first failure counts.
pub(crate) fn check_message(
    layers: &Layers,
    run: &Start,
    kind: InboundKind,
    name: &Name,
    headers: &Headers,
    input: &[Payload],
) -> Result<(), Failure> {
    let message = InboundMessage { run, kind, name, headers, input };
    layers.interceptors.iter().try_for_each(|interceptor| interceptor.message(&message))
}

/// Returns the headers that interceptors add to a command.
pub(crate) fn outbound_headers(layers: &Layers, ctx: &dacapo_core::Ctx, kind: OutboundKind, name: &Name) -> Headers {
    if layers.interceptors.is_empty() {
        return Headers::new();
    }
    let run = ctx.info().unwrap_or_default().start;
    // The next run of a chain has the headers of this one, unless it is given others.
    let mut headers = if kind == OutboundKind::ContinueAsNew { run.headers.clone() } else { Headers::new() };
    for interceptor in layers.interceptors.iter() {
        interceptor.command(&mut OutboundCommand { kind, name, run: &run, headers: &mut headers });
    }
    headers
}
