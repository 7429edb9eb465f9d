//! duroxide on SQLite, with more workers and shorter waits than it comes with. Its pool cannot be replaced, and it does not flush.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use dacapo_bench_meter::{Place, Rival, Shape, System, finished, ticks};
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};

pub struct Duroxide {
    runtime: Arc<Runtime>,
    client: Client,
}

/// How many activities, the payload, and the id under which the end is told.
type Input = (u32, String, String);

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (activities, payload, id): Input = serde_json::from_str(&input).map_err(|error| error.to_string())?;
    let mut last = payload.clone();
    for _ in 0..activities {
        last = ctx.schedule_activity("echo", payload.clone()).await?;
    }
    finished::tell(&id);
    Ok(last)
}

async fn fan(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (activities, payload, id): Input = serde_json::from_str(&input).map_err(|error| error.to_string())?;
    let all = ctx.join((0..activities).map(|_| ctx.schedule_activity("echo", payload.clone())).collect()).await;
    finished::tell(&id);
    all.into_iter().last().unwrap_or(Ok(payload))
}

async fn sleeper(ctx: OrchestrationContext, payload: String) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_secs(3600)).await;
    Ok(payload)
}

impl System for Duroxide {
    fn name(&self) -> &'static str {
        "duroxide 0.1"
    }

    async fn run(&self, shape: Shape, id: String, payload: String) -> Result<String> {
        let (name, activities) = match shape {
            Shape::Chain(activities) => ("chain", activities),
            Shape::Fan(activities) => ("fan", activities),
        };
        let finished = finished::expect(&id);
        let input = serde_json::to_string(&(activities, payload, &id))?;
        self.client.start_orchestration(&id, name, input).await?;
        finished.await?;
        loop {
            match self.client.get_orchestration_status(&id).await? {
                OrchestrationStatus::Completed { output, .. } => return Ok(output),
                OrchestrationStatus::Failed { details, .. } => bail!("{id} failed: {}", details.display_message()),
                // Its code has returned, and what it came to is being written.
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    async fn start_sleeper(&self, id: String, payload: String) -> Result<()> {
        Ok(self.client.start_orchestration(id, "sleeper", payload).await?)
    }
}

impl Rival for Duroxide {
    async fn open(place: &Place) -> Result<Self> {
        let Place::File(file) = place else { bail!("duroxide has no store in PostgreSQL") };
        let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}?mode=rwc", file.display()), None).await?);
        // It would warn of every lock it meets, and on the output that lines are printed to. Set before is set for good.
        let _ = tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::default());
        let echo = |_: ActivityContext, payload: String| async move {
            ticks::tick();
            Ok(payload)
        };
        let activities = ActivityRegistry::builder().register("echo", echo).build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("chain", chain)
            .register("fan", fan)
            .register("sleeper", sleeper)
            .build();
        let options = RuntimeOptions {
            // Shorter waits and more workers get in one another's way: SQLite answers that it is locked, and they back off.
            dispatcher_min_poll_interval: Duration::from_millis(10),
            orchestration_concurrency: 4,
            worker_concurrency: 8,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
        Ok(Self { runtime, client: Client::new(store) })
    }

    async fn close(&self) {
        self.runtime.clone().shutdown(Some(0)).await;
    }
}
