//! The engine as a [`Client`], and a client that only reads a store.

mod convert;
mod events;
mod store_client;

use dacapo_client::{
    Capabilities, Client, ClientFuture, CompleteActivity, Cursor, Description, Error, Feature, Filter, HistoryPage,
    Page, PollUpdate, Problem, Progress, QueryRun, RawHistory, ResolvePromise, Result, RunRef, RunResult, SendSignal,
    SendUpdate, StartRun, Started, StuckRuns, UpdateState,
};
use dacapo_core::{Failure, Inspection, Payload, Signal, Update};

use std::future::Future;
use std::path::PathBuf;

use crate::api::start::NewStart;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::read::{Reader, RunId};
use crate::run::waiters::{UpdateStage, WaitFor};
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
        let engine = self.clone();
        let QueryRun { name, input, headers } = query;
        answer(async move { Engine::query(&engine, &RunId::from(run), name, input, headers).await })
    }

    fn update(&self, run: RunRef, update: SendUpdate) -> ClientFuture<UpdateState> {
        let engine = self.clone();
        let SendUpdate { id, name, input, headers, wait } = update;
        let update = Update { id, name, input, headers, ..Update::default() };
        let call = async move { Engine::update(&engine, &RunId::from(run), update, WaitFor::from(wait)).await };
        answer::<_, UpdateStage>(call)
    }

    fn update_result(&self, run: RunRef, update: PollUpdate) -> ClientFuture<UpdateState> {
        let engine = self.clone();
        let PollUpdate { id, wait } = update;
        let call = async move { Engine::update_result(&engine, &RunId::from(run), id, WaitFor::from(wait)).await };
        answer::<_, UpdateStage>(call)
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
        let engine = self.clone();
        answer(async move { Engine::reset(&engine, &RunId::from(run), turn, &reason).await })
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
        let engine = self.clone();
        let this = engine.clone();
        let read = async move {
            let run = RunId::from(run);
            engine.blocking(WorkKind::Read, move |_| Engine::describe(&this, &run)).await
        };
        answer::<_, crate::RunDescription>(read)
    }

    fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> ClientFuture<Page> {
        read(self, move |reader| reader.page(filter, after, limit))
    }

    fn count(&self, filter: Filter) -> ClientFuture<u64> {
        read(self, move |reader| reader.count(&filter))
    }

    fn history(&self, run: RunRef, after: Option<Cursor>, limit: usize) -> ClientFuture<HistoryPage> {
        read(self, move |reader| reader.events(&run.into(), after, limit))
    }

    fn raw_history(&self, run: RunRef) -> ClientFuture<RawHistory> {
        read(self, move |reader| reader.raw_history(&run.into()))
    }

    fn complete(&self, token: String, result: Result<Payload, Failure>) -> ClientFuture<()> {
        let engine = self.clone();
        answer(async move { Engine::complete(&engine, &token, result).await })
    }

    fn heartbeat(&self, token: String, details: Payload) -> ClientFuture<Option<String>> {
        let engine = self.clone();
        Box::pin(async move {
            let cancelled = Engine::heartbeat(&engine, &token, details).await?;
            Ok(cancelled.map(|cancelled| cancelled.reason))
        })
    }

    fn complete_activity(&self, run: RunRef, completion: CompleteActivity) -> ClientFuture<()> {
        let engine = self.clone();
        let CompleteActivity { activity_id, result } = completion;
        answer(async move { Engine::complete_activity(&engine, &RunId::from(run), activity_id, result).await })
    }

    fn resolve_promise(&self, run: RunRef, resolution: ResolvePromise) -> ClientFuture<()> {
        let engine = self.clone();
        let ResolvePromise { promise, result } = resolution;
        answer(async move { Engine::resolve_promise(&engine, &RunId::from(run), promise, result).await })
    }

    fn inspect(&self, run: RunRef) -> ClientFuture<Inspection> {
        let engine = self.clone();
        answer(async move { Engine::inspect(&engine, &RunId::from(run)).await })
    }

    fn release(&self, run: RunRef) -> ClientFuture<()> {
        let engine = self.clone();
        answer(async move { Engine::release(&engine, &RunId::from(run)).await })
    }

    fn delete(&self, run: RunRef) -> ClientFuture<()> {
        let engine = self.clone();
        answer(async move { Engine::delete(&engine, &RunId::from(run)).await })
    }

    fn stuck_runs(&self) -> ClientFuture<Vec<StuckRuns>> {
        read(self, Reader::stuck_runs)
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
