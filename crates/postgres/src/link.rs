//! One connection, driven by the thread that uses it: no other thread has to be woken for a round trip.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use dacapo_core::DurationText;
use dacapo_store::StoreError;
use futures::future::join_all;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement};

use crate::address::{Address, Encryption};
use crate::failure::Failure;
use crate::tls;
use crate::traffic::Traffic;
use crate::trip::Trip;

/// How many statements a connection keeps prepared: each search is another one, and the server keeps them in memory too.
const PREPARED: usize = 400;
/// The most statements of one trip: as many futures are polled in the order of their list.
const STEPS: usize = 30;

/// Sets what the defaults of the role or the database may have changed: commits wait for the disk, and nothing but this process
/// ends its statements and connections. Some of these settings are unknown to older servers. The answer says whether the
/// session has the settings of its start.
pub(crate) const BEGIN_SESSION: &str = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
     SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout'); \
     SELECT current_setting('dacapo.direct', true) AS direct";

/// The time that a call of the server may take at least, and how many leases. A server that is cut off takes longer.
const LEAST_DEADLINE: Duration = Duration::from_secs(2);
const LEASES: u32 = 3;

/// A connection and its prepared statements.
pub(crate) struct Link {
    /// None once the link is dropped: a runtime must not be dropped where async code runs.
    runtime: Option<Runtime>,
    client: Client,
    prepared: HashMap<String, Statement>,
    /// How long a call may take: then the connection counts as lost.
    deadline: Duration,
    /// Whether a call has taken longer.
    pub(crate) is_late: bool,
    /// Whether statements outside of transactions may only read.
    only_reads: bool,
    /// The traffic of this connection.
    pub(crate) traffic: Traffic,
}

impl Link {
    /// Connects, with more time for each call the more often calls were too late before.
    pub(crate) fn connect_patiently(address: &Address, too_late: u32) -> Result<Self, Failure> {
        let mut link = Self::connect(address)?;
        link.deadline = link.deadline.saturating_mul(1 << too_late.min(10));
        Ok(link)
    }

    pub(crate) fn connect(address: &Address) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime =
            runtime.map_err(|error| StoreError::Unavailable(format!("a connection cannot be driven: {error}")))?;
        let (config, deadline) = (&address.config, deadline(address));
        let connecting = async {
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
        };
        let client = drive(&runtime, async {
            let client = connecting.await?;
            begin_session(&client, address).await?;
            Ok(client)
        });
        let client = client.map_err(naming_pooler)?;
        Ok(Self {
            runtime: Some(runtime),
            client,
            prepared: HashMap::new(),
            deadline,
            is_late: false,
            only_reads: false,
            traffic: Traffic::default(),
        })
    }

    /// Runs the statements of a trip and returns the rows of each.
    pub(crate) fn run(&mut self, trip: &Trip<'_>) -> Result<Vec<Vec<Row>>, Failure> {
        debug_assert!(trip.steps.len() <= STEPS, "{} statements in one trip", trip.steps.len());
        self.prepare(trip)?;
        self.traffic.count(trip.steps.len());
        let Self { runtime, client, prepared, deadline, is_late, .. } = self;
        let runtime = runtime.as_ref().expect("a link in use has its runtime");
        let answers = drive(runtime, async {
            let all = join_all(trip.steps.iter().map(|step| {
                let statement = &prepared[step.sql.as_ref()];
                let values: Vec<&(dyn ToSql + Sync)> =
                    step.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
                let client = &*client;
                async move { client.query(statement, &values).await }
            }));
            in_time(*deadline, is_late, all).await
        })?;
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
        self.traffic.count(1);
        let Self { runtime, client, deadline, is_late, .. } = self;
        let runtime = runtime.as_ref().expect("a link in use has its runtime");
        Ok(drive(runtime, in_time(*deadline, is_late, client.batch_execute(sql)))??)
    }

    /// Lets statements outside of transactions read only, so that a transaction that cannot begin changes nothing.
    pub(crate) fn only_read_outside_of_transactions(&mut self) -> Result<(), Failure> {
        self.set_only_reads(true)
    }

    /// Lets statements outside of transactions write.
    pub(crate) fn write_outside_of_transactions(&mut self) -> Result<(), Failure> {
        self.set_only_reads(false)
    }

    fn set_only_reads(&mut self, only_reads: bool) -> Result<(), Failure> {
        if self.only_reads != only_reads {
            self.script(&format!("SET default_transaction_read_only = {only_reads}"))?;
            self.only_reads = only_reads;
        }
        Ok(())
    }

    /// Prepares the statements that this connection sees for the first time, all in one trip.
    fn prepare(&mut self, trip: &Trip<'_>) -> Result<(), Failure> {
        if self.prepared.len() > PREPARED {
            self.prepared.clear();
        }
        let mut new: Vec<&str> = trip.steps.iter().map(|step| step.sql.as_ref()).collect();
        new.retain(|sql| !self.prepared.contains_key(*sql));
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        self.traffic.count(0);
        let Self { runtime, client, prepared, deadline, is_late, .. } = self;
        let runtime = runtime.as_ref().expect("a link in use has its runtime");
        let preparing = join_all(new.iter().map(|sql| client.prepare(sql)));
        let made = drive(runtime, in_time(*deadline, is_late, preparing))?;
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

/// Returns how long a call may take.
pub(crate) fn deadline(address: &Address) -> Duration {
    (address.pace.lease * LEASES).max(LEAST_DEADLINE)
}

/// Waits for an answer of the server until the deadline. A proxy may keep a connection to a server that is gone.
async fn in_time<T>(deadline: Duration, is_late: &mut bool, call: impl Future<Output = T>) -> Result<T, Failure> {
    let answer = tokio::time::timeout(deadline, call).await;
    *is_late = answer.is_err();
    answer.map_err(|_| Failure::Disconnected(format!("the server has not answered for {}", DurationText(deadline))))
}

/// Sets what a session needs, and refuses one that is not this connection's own.
pub(crate) async fn begin_session(client: &Client, address: &Address) -> Result<(), Failure> {
    let late = || Failure::Disconnected("the server has not answered".to_owned());
    let answers = tokio::time::timeout(deadline(address), client.simple_query(BEGIN_SESSION)).await;
    let answers = answers.map_err(|_| late())??;
    let is_direct = |answer: &SimpleQueryMessage| match answer {
        SimpleQueryMessage::Row(row) => row.try_get("direct").ok().flatten() == Some("on"),
        _ => false,
    };
    match answers.iter().any(is_direct) {
        true => Ok(()),
        false => Err(pooler("it leaves out the settings with which a session begins")),
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
fn naming_pooler(failure: Failure) -> Failure {
    let text = match &failure {
        Failure::Disconnected(text) => text.clone(),
        Failure::Store(error) => error.to_string(),
        _ => return failure,
    };
    if text.contains("startup parameter") {
        return pooler(&text);
    }
    failure
}

fn pooler(why: &str) -> Failure {
    Failure::Store(StoreError::Unsupported(format!(
        "this is a connection pooler ({why}): give Dacapo a direct connection to PostgreSQL, because its statements and notifications \
         belong to a session"
    )))
}
