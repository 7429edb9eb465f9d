//! durare on SQLite and on PostgreSQL. On SQLite it comes with `synchronous=NORMAL`, which does not flush; here it is given a pool that does.
//! On PostgreSQL it commits as the server says, and is given more connections than it comes with.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use dacapo_bench_meter::{Place, Rival, Shape, System, ticks};
use durare::{DurableContext, DurableEngine, PostgresProvider, SqliteProvider, WorkflowOptions};
use futures::future::try_join_all;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

pub struct Durare(DurableEngine);

#[durare::step]
async fn echo(ctx: &DurableContext, payload: String) -> durare::Result<String> {
    ticks::tick();
    Ok(payload)
}

#[durare::workflow]
async fn chain(ctx: DurableContext, input: (u32, String)) -> durare::Result<String> {
    let (activities, payload) = input;
    let mut last = payload.clone();
    for _ in 0..activities {
        last = echo(&ctx, payload.clone()).await?;
    }
    Ok(last)
}

#[durare::workflow]
async fn fan(ctx: DurableContext, input: (u32, String)) -> durare::Result<String> {
    let (activities, payload) = input;
    let all = try_join_all((0..activities).map(|_| echo(&ctx, payload.clone()))).await?;
    Ok(all.last().cloned().unwrap_or_default())
}

#[durare::workflow]
async fn sleeper(ctx: DurableContext, payload: String) -> durare::Result<String> {
    ctx.sleep(Duration::from_secs(3600)).await?;
    Ok(payload)
}

impl System for Durare {
    fn name(&self) -> &'static str {
        "durare 0.5"
    }

    async fn run(&self, shape: Shape, id: String, payload: String) -> Result<String> {
        let options = WorkflowOptions::with_id(id);
        let run = match shape {
            Shape::Chain(activities) => self.0.start_with(Chain, (activities, payload), options).await?,
            Shape::Fan(activities) => self.0.start_with(Fan, (activities, payload), options).await?,
        };
        Ok(run.await?)
    }

    async fn start_sleeper(&self, id: String, payload: String) -> Result<()> {
        self.0.start_with(Sleeper, payload, WorkflowOptions::with_id(id)).await?;
        Ok(())
    }
}

impl Rival for Durare {
    async fn open(place: &Place) -> Result<Self> {
        Ok(Self(match place {
            Place::File(file) => DurableEngine::new(Arc::new(on_sqlite(file).await?)).await?,
            Place::Schema { database, schema } => {
                DurableEngine::new(Arc::new(on_postgres(database, schema).await?)).await?
            }
        }))
    }

    async fn close(&self) {
        // Sleepers do not end; nothing is measured any more.
        let _ = self.0.shutdown(Duration::ZERO).await;
    }
}

/// How long one of ten thousand starts at once may wait for a connection.
const WAIT: Duration = Duration::from_secs(600);

/// Connections to PostgreSQL; it comes with 8.
const CONNECTIONS: u32 = 24;

async fn on_sqlite(file: &Path) -> Result<SqliteProvider> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(60));
    // Its own number of connections.
    let pool = SqlitePoolOptions::new().max_connections(5).acquire_timeout(WAIT);
    Ok(SqliteProvider::from_pool(pool.connect_with(options).await?))
}

async fn on_postgres(database: &str, schema: &str) -> Result<PostgresProvider> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(WAIT);
    Ok(PostgresProvider::from_pool_with_schema(pool.connect(database).await?, schema)?)
}
