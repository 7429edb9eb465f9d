//! The engine as a [`Client`], and a client that only reads a store.

mod convert;
mod events;
mod routing;
mod store_client;

use dacapo_client::{
    Capabilities, Client, ClientCall, ClientFuture, CompleteActivity, Count, Cursor, Description, Error, Feature,
    Filter, GroupBy, HistoryPage, Node, Page, PollUpdate, Problem, Progress, QueryRun, RawHistory, ResolvePromise,
    Result, RunRef, RunResult, SendSignal, SendUpdate, StartRun, Started, StuckRuns, UpdateState,
};
use dacapo_core::{Failure, Inspection, Payload, Signal, Update};

use std::future::Future;
use std::path::PathBuf;

use crate::api::external_completion::{Reported, complete_here, heartbeat_here};
use crate::api::start::NewStart;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::nodes;
use crate::read::{Reader, RunId};
use crate::run::waiters::WaitFor;
use routing::{at_node, routed, run_of_token};
pub use store_client::StoreClient;

/// Awaits a call of the engine as the answer of a client.
fn answer<T, A: Into<T>>(call: impl Future<Output = Result<A, Error>> + Send + 'static) -> ClientFuture<T> {
    Box::pin(async move { Ok(call.await?.into()) })
}

/// Reads the store on a thread that may block.
fn read<T: Send + 'static>(
    engine: &Engine,
    read: impl FnOnce(&Reader) -> Result<T, Error> + Send + 'static,
) -> ClientFuture<T> {
    let engine = engine.clone();
    answer(async move {
        let reader = engine.reader().clone();
        engine.blocking(WorkKind::Read, move |_| read(&reader)).await
    })
}

impl Client for Engine {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.options.capabilities
    }

    fn start(&self, start: StartRun) -> ClientFuture<Started> {
        // The engine begins before the answer is awaited.
        answer(Engine::start(self, NewStart::from(start)))
    }

    fn signal(&self, run: RunRef, signal: SendSignal) -> ClientFuture<()> {
        let engine = self.clone();
        let SendSignal { name, input, headers, request_id } = signal;
        let signal = Signal { name, input, headers, ..Signal::default() };
        answer(async move { Engine::signal(&engine, &RunId::from(run), signal, request_id).await })
    }

    fn query(&self, run: RunRef, query: QueryRun) -> ClientFuture<Payload> {
        let call = query.clone();
        let here = move |engine: Engine, run: RunRef| async move {
            let QueryRun { name, input, headers } = query;
            Engine::query(&engine, &run.into(), name, input, headers).await
        };
        routed(self, run, move |run| ClientCall::Query(run, call.clone()), here)
    }

    fn update(&self, run: RunRef, update: SendUpdate) -> ClientFuture<UpdateState> {
        let call = update.clone();
        let here = move |engine: Engine, run: RunRef| async move {
            let SendUpdate { id, name, input, headers, wait } = update;
            let update = Update { id, name, input, headers, ..Update::default() };
            Ok(Engine::update(&engine, &run.into(), update, WaitFor::from(wait)).await?.into())
        };
        routed(self, run, move |run| ClientCall::Update(run, call.clone()), here)
    }

    fn update_result(&self, run: RunRef, update: PollUpdate) -> ClientFuture<UpdateState> {
        let call = update.clone();
        let here = move |engine: Engine, run: RunRef| async move {
            let PollUpdate { id, wait } = update;
            Ok(Engine::update_result(&engine, &run.into(), id, WaitFor::from(wait)).await?.into())
        };
        routed(self, run, move |run| ClientCall::UpdateResult(run, call.clone()), here)
    }

    fn cancel(&self, run: RunRef, reason: String) -> ClientFuture<()> {
        let engine = self.clone();
        answer(async move { Engine::cancel(&engine, &RunId::from(run), &reason).await })
    }

    fn terminate(&self, run: RunRef, reason: String) -> ClientFuture<()> {
        let engine = self.clone();
        answer(async move { Engine::terminate(&engine, &RunId::from(run), &reason).await })
    }

    fn reset(&self, run: RunRef, turn: u64, reason: String) -> ClientFuture<Started> {
        let why = reason.clone();
        let here = move |engine: Engine, run: RunRef| async move {
            Ok(Engine::reset(&engine, &run.into(), turn, &reason).await?.into())
        };
        routed(self, run, move |run| ClientCall::Reset(run, turn, why.clone()), here)
    }

    fn result(&self, run: RunRef) -> ClientFuture<RunResult> {
        let engine = self.clone();
        Box::pin(async move {
            let locator = run.locator().map(convert::number);
            let run = RunId::from(run);
            let ended = match locator {
                Some(number) => engine.result_of(&run, number).await,
                None => Engine::result(&engine, &run).await,
            };
            let (status, result) = ended?;
            Ok(RunResult::new(status, result))
        })
    }

    fn result_or_stuck(&self, run: RunRef) -> ClientFuture<RunResult> {
        let engine = self.clone();
        Box::pin(async move {
            let (status, result) = Engine::result_or_stuck(&engine, &RunId::from(run)).await?;
            Ok(RunResult::new(status, result))
        })
    }

    fn describe(&self, run: RunRef) -> ClientFuture<Description> {
        let here = |engine: Engine, run: RunRef| async move {
            let (this, run) = (engine.clone(), RunId::from(run));
            Ok(engine.blocking(WorkKind::Read, move |_| Engine::describe(&this, &run)).await?.into())
        };
        routed(self, run, ClientCall::Describe, here)
    }

    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> ClientFuture<Page> {
        read(self, move |reader| reader.page(filter, after, limit))
    }

    fn count(&self, filter: Filter) -> ClientFuture<u64> {
        read(self, move |reader| reader.count(&filter))
    }

    fn counts(&self, filter: Filter, by: Option<GroupBy>) -> ClientFuture<Vec<Count>> {
        read(self, move |reader| reader.counts(&filter, by))
    }

    fn history(&self, run: RunRef, after: Option<Cursor>, limit: usize) -> ClientFuture<HistoryPage> {
        read(self, move |reader| reader.events(&run.into(), after, limit))
    }

    fn raw_history(&self, run: RunRef) -> ClientFuture<RawHistory> {
        read(self, move |reader| reader.raw_history(&run.into()))
    }

    fn complete(&self, token: String, result: Result<Payload, Failure>) -> ClientFuture<()> {
        let Some(run) = run_of_token(&token) else {
            let engine = self.clone();
            return Box::pin(async move { Engine::complete(&engine, &token, result).await });
        };
        let call = (token.clone(), result.clone());
        let here = move |engine: Engine, _| async move {
            match complete_here(&engine, &token, result.clone()).await? {
                Some(node) => at_node(&engine, node, &ClientCall::Complete(token, result)).await,
                None => Ok(()),
            }
        };
        routed(self, run, move |_| ClientCall::Complete(call.0.clone(), call.1.clone()), here)
    }

    fn heartbeat(&self, token: String, details: Payload) -> ClientFuture<Option<String>> {
        let Some(run) = run_of_token(&token) else {
            let engine = self.clone();
            return Box::pin(
                async move { Ok(Engine::heartbeat(&engine, &token, details).await?.map(|why| why.reason)) },
            );
        };
        let call = (token.clone(), details.clone());
        let here = move |engine: Engine, _| async move {
            match heartbeat_here(&engine, &token, details.clone()).await? {
                Reported::At(node) => at_node(&engine, node, &ClientCall::Heartbeat(token, details)).await,
                Reported::Here(cancelled) => Ok(cancelled.map(|cancelled| cancelled.reason)),
            }
        };
        routed(self, run, move |_| ClientCall::Heartbeat(call.0.clone(), call.1.clone()), here)
    }

    fn complete_activity(&self, run: RunRef, completion: CompleteActivity) -> ClientFuture<()> {
        let call = completion.clone();
        let here = move |engine: Engine, run: RunRef| async move {
            let CompleteActivity { activity_id, result } = completion;
            Engine::complete_activity(&engine, &run.into(), activity_id, result).await
        };
        routed(self, run, move |run| ClientCall::CompleteActivity(run, call.clone()), here)
    }

    fn resolve_promise(&self, run: RunRef, resolution: ResolvePromise) -> ClientFuture<()> {
        let call = resolution.clone();
        let here = move |engine: Engine, run: RunRef| async move {
            let ResolvePromise { promise, result } = resolution;
            Engine::resolve_promise(&engine, &run.into(), promise, result).await
        };
        routed(self, run, move |run| ClientCall::ResolvePromise(run, call.clone()), here)
    }

    fn inspect(&self, run: RunRef) -> ClientFuture<Inspection> {
        let here = |engine: Engine, run: RunRef| async move { Engine::inspect(&engine, &run.into()).await };
        routed(self, run, ClientCall::Inspect, here)
    }

    fn release(&self, run: RunRef) -> ClientFuture<()> {
        if let Err(lacks) = self.capabilities().require(Feature::Quarantine) {
            return Box::pin(std::future::ready(Err(lacks)));
        }
        let here = |engine: Engine, run: RunRef| async move { Engine::release(&engine, &run.into()).await };
        routed(self, run, ClientCall::Release, here)
    }

    fn delete(&self, run: RunRef) -> ClientFuture<()> {
        let engine = self.clone();
        answer(async move { Engine::delete(&engine, &RunId::from(run)).await })
    }

    fn stuck_runs(&self) -> ClientFuture<Vec<StuckRuns>> {
        read(self, Reader::stuck_runs)
    }

    fn nodes(&self) -> ClientFuture<Vec<Node>> {
        let engine = self.clone();
        answer(async move { engine.blocking(WorkKind::Read, |shared| nodes::list::list(shared)).await })
    }

    fn verify(&self, mut progress: Progress) -> ClientFuture<Vec<Problem>> {
        read(self, move |reader| reader.verify(&mut progress))
    }

    fn back_up(&self, to: PathBuf) -> ClientFuture<()> {
        if let Err(lacks) = self.capabilities().require(Feature::Backup) {
            return Box::pin(std::future::ready(Err(lacks)));
        }
        read(self, move |reader| reader.back_up(&to))
    }
}
