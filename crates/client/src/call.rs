//! The calls of a client and their answers as data, so that one function can look at all of them, change them, refuse them
//! or send them elsewhere.

use std::path::PathBuf;

use dacapo_core::{Failure, Headers, Inspection, Payload};
use serde::{Deserialize, Serialize};

use crate::{
    Client, ClientFuture, CompleteActivity, Count, Cursor, Description, Filter, GroupBy, HistoryPage, Node, Page,
    PollUpdate, Problem, Progress, QueryRun, RawHistory, ResolvePromise, Result, RunRef, RunResult, SendSignal,
    SendUpdate, StartRun, Started, StuckRuns, UpdateState,
};

/// The number of the JSON form of calls, replies and errors. It is raised when a program of the number before would misread
/// or refuse what this one sends.
pub const CALLS_NUMBER: u64 = 5;

/// A call of a [`Client`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", content = "with", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientCall {
    /// [`Client::start`].
    Start(StartRun),
    /// [`Client::signal`].
    Signal(RunRef, SendSignal),
    /// [`Client::query`].
    Query(RunRef, QueryRun),
    /// [`Client::update`].
    Update(RunRef, SendUpdate),
    /// [`Client::update_result`].
    UpdateResult(RunRef, PollUpdate),
    /// [`Client::cancel`], with the reason.
    Cancel(RunRef, String),
    /// [`Client::terminate`], with the reason.
    Terminate(RunRef, String),
    /// [`Client::reset`], with the turn and the reason.
    Reset(RunRef, u64, String),
    /// [`Client::result`].
    #[serde(rename = "result")]
    RunResult(RunRef),
    /// [`Client::result_or_stuck`].
    ResultOrStuck(RunRef),
    /// [`Client::describe`].
    Describe(RunRef),
    /// [`Client::published`].
    Published(RunRef),
    /// [`Client::list`], with the cursor and the limit.
    List(Filter, Option<Cursor>, usize),
    /// [`Client::count`].
    Count(Filter),
    /// [`Client::counts`].
    Counts(Filter, Option<GroupBy>),
    /// [`Client::history`], with the cursor and the limit.
    History(RunRef, Option<Cursor>, usize),
    /// [`Client::raw_history`].
    RawHistory(RunRef),
    /// [`Client::complete`], with the token and the result.
    Complete(String, Result<Payload, Failure>),
    /// [`Client::heartbeat`], with the token and the details.
    Heartbeat(String, Payload),
    /// [`Client::complete_activity`].
    CompleteActivity(RunRef, CompleteActivity),
    /// [`Client::resolve_promise`].
    ResolvePromise(RunRef, ResolvePromise),
    /// [`Client::inspect`].
    Inspect(RunRef),
    /// [`Client::release`].
    Release(RunRef),
    /// [`Client::delete`].
    Delete(RunRef),
    /// [`Client::stuck_runs`].
    StuckRuns,
    /// [`Client::nodes`].
    Nodes,
    /// [`Client::verify`].
    Verify,
    /// [`Client::back_up`], with the new file.
    BackUp(PathBuf),
}

impl ClientCall {
    /// Returns the verb of the call, as it is called in Rust: `start`, `signal`, `back_up`.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Signal(..) => "signal",
            Self::Query(..) => "query",
            Self::Update(..) => "update",
            Self::UpdateResult(..) => "update_result",
            Self::Cancel(..) => "cancel",
            Self::Terminate(..) => "terminate",
            Self::Reset(..) => "reset",
            Self::RunResult(_) => "result",
            Self::ResultOrStuck(_) => "result_or_stuck",
            Self::Describe(_) => "describe",
            Self::Published(_) => "published",
            Self::List(..) => "list",
            Self::Count(_) => "count",
            Self::Counts(..) => "counts",
            Self::History(..) => "history",
            Self::RawHistory(_) => "raw_history",
            Self::Complete(..) => "complete",
            Self::Heartbeat(..) => "heartbeat",
            Self::CompleteActivity(..) => "complete_activity",
            Self::ResolvePromise(..) => "resolve_promise",
            Self::Inspect(_) => "inspect",
            Self::Release(_) => "release",
            Self::Delete(_) => "delete",
            Self::StuckRuns => "stuck_runs",
            Self::Nodes => "nodes",
            Self::Verify => "verify",
            Self::BackUp(_) => "back_up",
        }
    }

    /// Returns the run that the call names. A start names none: it has the workflow id that the run gets.
    pub const fn run(&self) -> Option<&RunRef> {
        match self {
            Self::Signal(run, _)
            | Self::Query(run, _)
            | Self::Update(run, _)
            | Self::UpdateResult(run, _)
            | Self::Cancel(run, _)
            | Self::Terminate(run, _)
            | Self::Reset(run, ..)
            | Self::RunResult(run)
            | Self::ResultOrStuck(run)
            | Self::Describe(run)
            | Self::Published(run)
            | Self::History(run, ..)
            | Self::RawHistory(run)
            | Self::CompleteActivity(run, _)
            | Self::ResolvePromise(run, _)
            | Self::Inspect(run)
            | Self::Release(run)
            | Self::Delete(run) => Some(run),
            Self::Start(_)
            | Self::List(..)
            | Self::Count(_)
            | Self::Counts(..)
            | Self::Complete(..)
            | Self::Heartbeat(..)
            | Self::StuckRuns
            | Self::Nodes
            | Self::Verify
            | Self::BackUp(_) => None,
        }
    }

    /// Returns the headers that travel with the call to the workflow, for the calls that have any.
    pub const fn headers_mut(&mut self) -> Option<&mut Headers> {
        match self {
            Self::Start(start) => Some(&mut start.headers),
            Self::Signal(_, signal) => Some(&mut signal.headers),
            Self::Query(_, query) => Some(&mut query.headers),
            Self::Update(_, update) => Some(&mut update.headers),
            _ => None,
        }
    }

    /// Makes the call. `progress` is used by [`Client::verify`] alone.
    pub fn send(self, client: &dyn Client, progress: Progress) -> ClientFuture<ClientReply> {
        use ClientReply as Reply;
        match self {
            Self::Start(start) => reply(client.start(start), Reply::Started),
            Self::Signal(run, signal) => reply(client.signal(run, signal), Reply::done),
            Self::Query(run, query) => reply(client.query(run, query), Reply::Payload),
            Self::Update(run, update) => reply(client.update(run, update), Reply::Update),
            Self::UpdateResult(run, update) => reply(client.update_result(run, update), Reply::Update),
            Self::Cancel(run, reason) => reply(client.cancel(run, reason), Reply::done),
            Self::Terminate(run, reason) => reply(client.terminate(run, reason), Reply::done),
            Self::Reset(run, turn, reason) => reply(client.reset(run, turn, reason), Reply::Started),
            Self::RunResult(run) => reply(client.result(run), Reply::RunResult),
            Self::ResultOrStuck(run) => reply(client.result_or_stuck(run), Reply::RunResult),
            Self::Describe(run) => reply(client.describe(run), |run| Reply::Description(Box::new(run))),
            Self::Published(run) => reply(client.published(run), Reply::Published),
            Self::List(filter, after, limit) => reply(client.list(filter, after, limit), Reply::Page),
            Self::Count(filter) => reply(client.count(filter), Reply::Count),
            Self::Counts(filter, by) => reply(client.counts(filter, by), Reply::Counts),
            Self::History(run, after, limit) => reply(client.history(run, after, limit), Reply::History),
            Self::RawHistory(run) => reply(client.raw_history(run), Reply::RawHistory),
            Self::Complete(token, result) => reply(client.complete(token, result), Reply::done),
            Self::Heartbeat(token, details) => reply(client.heartbeat(token, details), Reply::Heartbeat),
            Self::CompleteActivity(run, completion) => reply(client.complete_activity(run, completion), Reply::done),
            Self::ResolvePromise(run, resolution) => reply(client.resolve_promise(run, resolution), Reply::done),
            Self::Inspect(run) => reply(client.inspect(run), |units| Reply::Inspection(Box::new(units))),
            Self::Release(run) => reply(client.release(run), Reply::done),
            Self::Delete(run) => reply(client.delete(run), Reply::done),
            Self::StuckRuns => reply(client.stuck_runs(), Reply::StuckRuns),
            Self::Nodes => reply(client.nodes(), Reply::Nodes),
            Self::Verify => reply(client.verify(progress), Reply::Problems),
            Self::BackUp(to) => reply(client.back_up(to), Reply::done),
        }
    }
}

fn reply<T: Send + 'static>(answer: ClientFuture<T>, into: fn(T) -> ClientReply) -> ClientFuture<ClientReply> {
    Box::pin(async move { answer.await.map(into) })
}

/// The answer to a [`ClientCall`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "with", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientReply {
    /// The call is done, and has no answer.
    Done,
    /// The run that was started, or found started.
    Started(Started),
    /// The answer to a query.
    Payload(Payload),
    /// The state of an update.
    Update(UpdateState),
    /// The status and result of a run that ended.
    RunResult(RunResult),
    /// A run.
    Description(Box<Description>),
    /// The snapshot that a run published last.
    Published(Option<Payload>),
    /// A page of a list.
    Page(Page),
    /// A number of runs.
    Count(u64),
    /// Numbers of runs, in groups.
    Counts(Vec<Count>),
    /// A page of a history.
    History(HistoryPage),
    /// A history in the backend's own format.
    RawHistory(RawHistory),
    /// The reason for which the attempt that reported is cancelled, if it is.
    Heartbeat(Option<String>),
    /// The waits of all units of a run.
    Inspection(Box<Inspection>),
    /// Stuck runs by cause.
    StuckRuns(Vec<StuckRuns>),
    /// The processes that serve the backend.
    Nodes(Vec<Node>),
    /// The problems of the stored data.
    Problems(Vec<Problem>),
}

impl ClientReply {
    fn done((): ()) -> Self {
        Self::Done
    }
}

/// Takes the answer of one call out of its reply. A reply to another call is given back.
macro_rules! taken_from_reply {
    ($($answer:ty: $variant:ident $(($inner:ident => $take:expr))?;)*) => {
        $(impl TryFrom<ClientReply> for $answer {
            type Error = ClientReply;

            fn try_from(reply: ClientReply) -> std::result::Result<Self, ClientReply> {
                match reply {
                    ClientReply::$variant $(($inner))? => Ok(taken_from_reply!(@ $($take)?)),
                    other => Err(other),
                }
            }
        })*
    };
    (@) => { () };
    (@ $take:expr) => { $take };
}

taken_from_reply! {
    (): Done;
    Started: Started(started => started);
    Payload: Payload(payload => payload);
    UpdateState: Update(state => state);
    Description: Description(run => *run);
    Option<String>: Heartbeat(reason => reason);
    Inspection: Inspection(units => *units);
}
