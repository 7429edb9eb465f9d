//! A client inside interceptors.

use std::path::PathBuf;
use std::sync::Arc;

use dacapo_client::{
    Capabilities, Client, ClientCall as Call, ClientFuture, ClientReply as Reply, CompleteActivity, Count, Cursor,
    Description, Error, Filter, GroupBy, HistoryPage, Node, Page, PollUpdate, Problem, Progress, QueryRun, RawHistory,
    ResolvePromise, Result, RunRef, RunResult, SendSignal, SendUpdate, StartRun, Started, StuckRuns, UpdateState,
};
use dacapo_core::{Failure, Inspection, Payload};

use crate::Interceptor;
use crate::interceptor::Next;

/// A client whose calls pass through the interceptors of an app.
pub(crate) struct InterceptedClient {
    client: Arc<dyn Client>,
    interceptors: Arc<[Arc<dyn Interceptor>]>,
}

impl InterceptedClient {
    /// Puts interceptors around a client, if there are any.
    pub(crate) fn around(client: Arc<dyn Client>, interceptors: &Arc<[Arc<dyn Interceptor>]>) -> Arc<dyn Client> {
        match interceptors.is_empty() {
            true => client,
            false => Arc::new(Self { client, interceptors: interceptors.clone() }),
        }
    }

    /// Makes a call, and takes from its reply what the caller waits for.
    fn call<T: Send + 'static>(&self, call: Call, take: fn(Reply) -> Option<T>) -> ClientFuture<T> {
        self.call_with(call, Box::new(|_| {}), take)
    }

    fn call_with<T: Send + 'static>(
        &self,
        call: Call,
        progress: Progress,
        take: fn(Reply) -> Option<T>,
    ) -> ClientFuture<T> {
        let (client, verb) = (self.client.clone(), call.verb());
        let send = move |call: Call| call.send(&*client, progress);
        let wrap = |interceptor: &dyn Interceptor, call, next| interceptor.client(call, next);
        let answer = Next::chain(&self.interceptors, wrap, send).run(call);
        Box::pin(async move {
            let mismatch =
                || Error::InvalidArgument(format!("an interceptor answered `{verb}` with the reply of another call"));
            take(answer.await?).ok_or_else(mismatch)
        })
    }
}

fn done(reply: Reply) -> Option<()> {
    matches!(reply, Reply::Done).then_some(())
}

/// Returns a function that takes the value out of one variant of a reply.
macro_rules! value_of {
    ($variant:ident) => {
        |reply| match reply {
            Reply::$variant(value) => Some(value),
            _ => None,
        }
    };
}

impl Client for InterceptedClient {
    fn capabilities(&self) -> &Capabilities {
        self.client.capabilities()
    }

    fn start(&self, start: StartRun) -> ClientFuture<Started> {
        self.call(Call::Start(start), value_of!(Started))
    }

    fn signal(&self, run: RunRef, signal: SendSignal) -> ClientFuture<()> {
        self.call(Call::Signal(run, signal), done)
    }

    fn query(&self, run: RunRef, query: QueryRun) -> ClientFuture<Payload> {
        self.call(Call::Query(run, query), value_of!(Payload))
    }

    fn update(&self, run: RunRef, update: SendUpdate) -> ClientFuture<UpdateState> {
        self.call(Call::Update(run, update), value_of!(Update))
    }

    fn update_result(&self, run: RunRef, update: PollUpdate) -> ClientFuture<UpdateState> {
        self.call(Call::UpdateResult(run, update), value_of!(Update))
    }

    fn cancel(&self, run: RunRef, reason: String) -> ClientFuture<()> {
        self.call(Call::Cancel(run, reason), done)
    }

    fn terminate(&self, run: RunRef, reason: String) -> ClientFuture<()> {
        self.call(Call::Terminate(run, reason), done)
    }

    fn reset(&self, run: RunRef, turn: u64, reason: String) -> ClientFuture<Started> {
        self.call(Call::Reset(run, turn, reason), value_of!(Started))
    }

    fn result(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.call(Call::RunResult(run), value_of!(RunResult))
    }

    fn result_or_stuck(&self, run: RunRef) -> ClientFuture<RunResult> {
        self.call(Call::ResultOrStuck(run), value_of!(RunResult))
    }

    fn describe(&self, run: RunRef) -> ClientFuture<Description> {
        self.call(Call::Describe(run), |reply| match reply {
            Reply::Description(description) => Some(*description),
            _ => None,
        })
    }

    fn published(&self, run: RunRef) -> ClientFuture<Option<Payload>> {
        self.call(Call::Published(run), value_of!(Published))
    }

    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> ClientFuture<Page> {
        self.call(Call::List(filter, after, limit), value_of!(Page))
    }

    fn count(&self, filter: Filter) -> ClientFuture<u64> {
        self.call(Call::Count(filter), value_of!(Count))
    }

    fn counts(&self, filter: Filter, by: Option<GroupBy>) -> ClientFuture<Vec<Count>> {
        self.call(Call::Counts(filter, by), value_of!(Counts))
    }

    fn history(&self, run: RunRef, after: Option<Cursor>, limit: usize) -> ClientFuture<HistoryPage> {
        self.call(Call::History(run, after, limit), value_of!(History))
    }

    fn raw_history(&self, run: RunRef) -> ClientFuture<RawHistory> {
        self.call(Call::RawHistory(run), value_of!(RawHistory))
    }

    fn complete(&self, token: String, result: Result<Payload, Failure>) -> ClientFuture<()> {
        self.call(Call::Complete(token, result), done)
    }

    fn heartbeat(&self, token: String, details: Payload) -> ClientFuture<Option<String>> {
        self.call(Call::Heartbeat(token, details), value_of!(Heartbeat))
    }

    fn complete_activity(&self, run: RunRef, completion: CompleteActivity) -> ClientFuture<()> {
        self.call(Call::CompleteActivity(run, completion), done)
    }

    fn resolve_promise(&self, run: RunRef, resolution: ResolvePromise) -> ClientFuture<()> {
        self.call(Call::ResolvePromise(run, resolution), done)
    }

    fn inspect(&self, run: RunRef) -> ClientFuture<Inspection> {
        self.call(Call::Inspect(run), |reply| match reply {
            Reply::Inspection(inspection) => Some(*inspection),
            _ => None,
        })
    }

    fn release(&self, run: RunRef) -> ClientFuture<()> {
        self.call(Call::Release(run), done)
    }

    fn delete(&self, run: RunRef) -> ClientFuture<()> {
        self.call(Call::Delete(run), done)
    }

    fn stuck_runs(&self) -> ClientFuture<Vec<StuckRuns>> {
        self.call(Call::StuckRuns, value_of!(StuckRuns))
    }

    fn nodes(&self) -> ClientFuture<Vec<Node>> {
        self.call(Call::Nodes, value_of!(Nodes))
    }

    fn verify(&self, progress: Progress) -> ClientFuture<Vec<Problem>> {
        self.call_with(Call::Verify, progress, value_of!(Problems))
    }

    fn back_up(&self, to: PathBuf) -> ClientFuture<()> {
        self.call(Call::BackUp(to), done)
    }
}
