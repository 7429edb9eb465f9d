//! One connection, driven by the thread that uses it: no other thread has to be woken for a round trip.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::thread;

use dacapo_store::StoreError;
use futures::future::join_all;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::address::{Address, Encryption};
use crate::failure::Failure;
use crate::tls;
use crate::trip::Trip;

/// The most statements of one trip: as many futures are polled in the order of their list.
const STEPS: usize = 30;

/// A pooler that shares sessions between clients refuses this, and names it in its error.
const DIRECT: &str = "-c dacapo.direct=on";

/// A connection and its prepared statements.
pub(crate) struct Link {
    /// None once the link is dropped: a runtime must not be dropped where async code runs.
    runtime: Option<Runtime>,
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl Link {
    pub(crate) fn connect(address: &Address) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime =
            runtime.map_err(|error| StoreError::Unavailable(format!("a connection cannot be driven: {error}")))?;
        let mut config = address.config.clone();
        let options = format!("{} {DIRECT}", config.get_options().unwrap_or_default());
        config.options(options);
        let client = drive(&runtime, async {
            match address.encryption {
                Encryption::None => {
                    let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
                    tokio::spawn(connection);
                    Ok::<_, Failure>(client)
                }
                _ => {
                    let (client, connection) = config.connect(tls::connector(address)?).await?;
                    tokio::spawn(connection);
                    Ok(client)
                }
            }
        });
        let client = client.map_err(|failure| naming_pooler(address, failure))?;
        let mut link = Self { runtime: Some(runtime), client, prepared: HashMap::new() };
        link.require_durability()?;
        Ok(link)
    }

    /// Commits wait for the disk, whatever the defaults of the role or the database are.
    fn require_durability(&mut self) -> Result<(), Failure> {
        let sql =
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";
        self.script(sql)
    }

    /// Runs the statements of a trip and returns the rows of each.
    pub(crate) fn run(&mut self, trip: &Trip<'_>) -> Result<Vec<Vec<Row>>, Failure> {
        debug_assert!(trip.steps.len() <= STEPS, "{} statements in one trip", trip.steps.len());
        self.prepare(trip)?;
        let Self { runtime, client, prepared } = self;
        let runtime = runtime.as_ref().expect("a link in use has its runtime");
        let answers = drive(runtime, async {
            join_all(trip.steps.iter().map(|step| {
                let statement = &prepared[step.sql.as_ref()];
                let values: Vec<&(dyn ToSql + Sync)> =
                    step.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
                let client = &*client;
                async move { client.query(statement, &values).await }
            }))
            .await
        });
        let mut rows = Vec::with_capacity(answers.len());
        let mut errors = Vec::new();
        for answer in answers {
            match answer {
                Ok(found) => rows.push(found),
                Err(error) => errors.push(error),
            }
        }
        Failure::first(errors).map_or(Ok(rows), Err)
    }

    /// Runs one statement.
    pub(crate) fn query(&mut self, sql: &str, values: Vec<crate::trip::Value<'_>>) -> Result<Vec<Row>, Failure> {
        let mut trip = Trip::default();
        trip.step(sql.to_owned(), values);
        Ok(self.run(&trip)?.pop().unwrap_or_default())
    }

    /// Runs statements that have no values.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Failure> {
        let Self { runtime, client, .. } = self;
        let runtime = runtime.as_ref().expect("a link in use has its runtime");
        drive(runtime, client.batch_execute(sql)).map_err(Failure::from)
    }

    /// Prepares the statements that this connection sees for the first time, all in one trip.
    fn prepare(&mut self, trip: &Trip<'_>) -> Result<(), Failure> {
        let mut new: Vec<&str> = trip.steps.iter().map(|step| step.sql.as_ref()).collect();
        new.retain(|sql| !self.prepared.contains_key(*sql));
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let Self { runtime, client, prepared } = self;
        let runtime = runtime.as_ref().expect("a link in use has its runtime");
        let made = drive(runtime, join_all(new.iter().map(|sql| client.prepare(sql))));
        for (sql, statement) in new.into_iter().zip(made) {
            prepared.insert(sql.to_owned(), statement?);
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a future to its end on this thread, or on another where this one runs async code, which must not block.
fn drive<T: Send>(runtime: &Runtime, work: impl Future<Output = T> + Send) -> T {
    match Handle::try_current() {
        Err(_) => runtime.block_on(work),
        Ok(_) => thread::scope(|scope| {
            let thread = scope.spawn(|| runtime.block_on(work));
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        }),
    }
}

/// Says what a pooler's error means. Notifications and prepared statements belong to a session, and a pooler that gives
/// each transaction another session loses both.
fn naming_pooler(address: &Address, failure: Failure) -> Failure {
    let text = match &failure {
        Failure::Disconnected(text) => text.clone(),
        Failure::Store(error) => error.to_string(),
        _ => return failure,
    };
    if text.contains("startup parameter") {
        return Failure::Store(StoreError::Unsupported(format!(
            "{} is a connection pooler ({text}): give Dacapo a direct connection to PostgreSQL, because its statements and \
             notifications belong to a session",
            address.shown()
        )));
    }
    failure
}
