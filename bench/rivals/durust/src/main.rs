//! The workloads of the bench on durust: `dacapo-bench-durust [--quick] [--only w1,…] [--url DATABASE]`. On SQLite it flushes every commit, on
//! PostgreSQL it commits as the server says.

use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dacapo_bench_meter::{Place, Rival, RivalArguments, Shape, System, finished, measure, ticks};
use durust::provider::{DurableBackend, HistoryEventData, StreamHistoryRequest};
use durust::{Client, EventId, PostgresBackend, PostgresBackendConfig, RunId, SqliteBackend, Worker, WorkerShutdown};
use serde::{Deserialize, Serialize};

const QUEUE: &str = "bench";

/// Connections to PostgreSQL; it comes with 16.
const CONNECTIONS: usize = 24;

struct Durust<B: DurableBackend> {
    backend: B,
    client: Client<B>,
    shutdown: WorkerShutdown,
    worker: Mutex<Option<JoinHandle<Result<()>>>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Echo {
    payload: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Work {
    activities: u32,
    payload: String,
    id: String,
}

#[durust::activity(name = "echo")]
async fn echo(input: Echo) -> durust::Result<String> {
    ticks::tick();
    Ok(input.payload)
}

#[durust::workflow(name = "chain", version = 1)]
async fn chain(input: Work) -> durust::Result<String> {
    let mut last = input.payload.clone();
    for _ in 0..input.activities {
        last = durust::call_activity!(echo(Echo { payload: input.payload.clone() })).task_queue(QUEUE).await?;
    }
    finished::tell(&input.id);
    Ok(last)
}

#[durust::workflow(name = "fan", version = 1)]
async fn fan(input: Work) -> durust::Result<String> {
    let mut branches = Vec::new();
    for _ in 0..input.activities {
        let call = durust::call_activity!(echo(Echo { payload: input.payload.clone() }));
        branches.push(call.task_queue(QUEUE).spawn().await?.result());
    }
    let all = durust::join_all(branches).await?;
    finished::tell(&input.id);
    Ok(all.last().cloned().unwrap_or_default())
}

#[durust::workflow(name = "sleeper", version = 1)]
async fn sleeper(input: Echo) -> durust::Result<String> {
    durust::sleep(Duration::from_secs(3600)).await?;
    Ok(input.payload)
}

impl<B: DurableBackend> Durust<B> {
    /// Starts a worker.
    fn over(backend: B) -> Self {
        let mut worker = Worker::builder(backend.clone())
            .workflow_task_queue(QUEUE)
            .activity_task_queue(QUEUE)
            .register_workflow(chain)
            .register_workflow(fan)
            .register_workflow(sleeper)
            .register_activity(echo)
            .max_cached_workflows(20_000)
            .max_concurrent_workflow_tasks(256)
            .workflow_task_prefetch_limit(256)
            .workflow_task_commit_batch_size(64)
            .max_concurrent_activities(512)
            .activity_task_batch_size(64)
            .activity_completion_batch_size(64)
            .idle_wait(Duration::from_millis(1))
            .max_idle_wait(Duration::from_millis(1))
            .build();
        let shutdown = worker.shutdown_handle();
        // Its future cannot change threads, so it gets one of its own.
        let worker = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(worker.run())?)
        });
        Self { client: Client::new(backend.clone()), backend, shutdown, worker: Mutex::new(Some(worker)) }
    }

    /// Ends the worker.
    async fn end(&self) {
        self.shutdown.shutdown();
        let worker = self.worker.lock().ok().and_then(|mut worker| worker.take());
        if let Some(worker) = worker {
            // What it came to does not matter: nothing is measured any more.
            let _ = tokio::task::spawn_blocking(move || worker.join()).await;
        }
    }

    /// What a run came to, if that is written.
    async fn result(&self, run: &RunId) -> Result<Option<String>> {
        let mut after = EventId::ZERO;
        loop {
            let chunk = self.backend.stream_history(StreamHistoryRequest {
                run_id: run.clone(),
                after_event_id: after,
                up_to_event_id: EventId(u64::MAX >> 1),
                max_events: 10_000,
                max_bytes: usize::MAX,
            });
            let events = chunk.await?.events;
            let Some(last) = events.last() else { return Ok(None) };
            if let HistoryEventData::WorkflowCompleted { result } = &last.data {
                return Ok(Some(durust::decode_payload(result)?));
            }
            after = last.event_id;
        }
    }
}

impl<B: DurableBackend> System for Durust<B> {
    fn name(&self) -> &'static str {
        "durust 0.2"
    }

    async fn run(&self, shape: Shape, id: String, payload: String) -> Result<String> {
        let finished = finished::expect(&id);
        let work = |activities| Work { activities, payload, id: id.clone() };
        let run = match shape {
            Shape::Chain(activities) => self.client.start_workflow::<chain>(&id, QUEUE, work(activities)).await?,
            Shape::Fan(activities) => self.client.start_workflow::<fan>(&id, QUEUE, work(activities)).await?,
        };
        finished.await.with_context(|| format!("no caller waits for {id}"))?;
        loop {
            match self.result(&run).await? {
                Some(result) => return Ok(result),
                // Its code has returned, and what it came to is being written.
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    async fn start_sleeper(&self, id: String, payload: String) -> Result<()> {
        self.client.start_workflow::<sleeper>(id, QUEUE, Echo { payload }).await?;
        Ok(())
    }
}

impl Rival for Durust<SqliteBackend> {
    async fn open(place: &Place) -> Result<Self> {
        let Place::File(file) = place else { bail!("a database is opened by the other backend") };
        Ok(Self::over(SqliteBackend::open(file)?))
    }

    async fn close(&self) {
        self.end().await;
    }
}

impl Rival for Durust<PostgresBackend> {
    async fn open(place: &Place) -> Result<Self> {
        let Place::Schema { database, schema } = place else { bail!("a file is opened by the other backend") };
        let config = PostgresBackendConfig::new(database).schema(schema).max_pool_size(CONNECTIONS);
        Ok(Self::over(PostgresBackend::connect_with_config(config).await?))
    }

    async fn close(&self) {
        self.end().await;
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = RivalArguments::parse(std::env::args().skip(1))?;
    match arguments.is_on_database() {
        true => measure::<Durust<PostgresBackend>>(&arguments).await,
        false => measure::<Durust<SqliteBackend>>(&arguments).await,
    }
}
